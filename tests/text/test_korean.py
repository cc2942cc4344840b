"""Korean by the rules of standard pronunciation, on words whose sound is known."""

import pytest

from myxtts.text import phonemes
from myxtts.text.cleaners import normalise
from myxtts.text.languages.korean.numbers import native
from myxtts.text.languages.korean.sounds import pronounce, to_ipa
from myxtts.text.tokenizer import Tokenizer

SOUNDS = {
    "codas": "닭:닥 값:갑 부엌:부억 낮:낟 외곬:외골 삶과:삼과",
    "tense": "넓다:널따 밟다:밥따 읽다:익따 맑게:말께 닭과:닥꽈 앉다:안따 핥다:할따 "
    "닮고:담꼬 학교:학꾜",
    "h": "놓다:노타 많다:만타 싫다:실타 좋은:조은 싫어:시러 쌓네:싼네 않는:안는 "
    "뚫는:뚤른 입학:이팍 못하다:모타다 밟히다:발피다 앉히다:안치다 맞히다:마치다 전화:전화",
    "links": "옷이:오시 닭을:달글 값이:갑씨 넋이:넉씨 앉아:안자 있어요:이써요 음악:으막",
    "palatals": "같이:가치 굳이:구지 닫혀:다처 붙여:부처 굳히다:구치다",
    "nasals": "국물:궁물 먹는:멍는 없는:엄는 앞문:암문 독립:동닙 협력:혐녁 "
    "종로:종노 감사합니다:감사함니다",
    "liquids": "신라:실라 칼날:칼랄 설날:설랄 생산량:생산냥",
    "vowels": "희망:히망 주의:주이 우리의:우리에 의사:의사 시계:시게 가져:가저",
    "compounds": "꽃잎:꼰닙 색연필:생년필 십육:심뉵 십이:시비 열여섯:열려섣",
}


@pytest.mark.parametrize("rule", SOUNDS)
def test_a_word_is_spelled_as_it_sounds(rule):
    for pair in SOUNDS[rule].split():
        written, sounded = pair.split(":")
        assert pronounce(written) == sounded


def test_plain_stops_are_voiced_between_voiced_sounds():
    assert to_ipa("가구") == "kaɡu" and to_ipa("악까") == "akk͈a" and to_ipa("신발") == "ɕinbal"
    assert to_ipa("나라") == "naɾa" and to_ipa("달라") == "talla"


def test_a_counter_takes_a_native_number():
    assert [native(n) for n in (1, 10, 20, 21, 99)] == ["한", "열", "스무", "스물한", "아흔아홉"]
    read = [normalise(text, "ko") for text in ("3시간", "3개월", "20살", "제3권", "13시", "3시장")]
    assert read == ["세 시간", "삼 개월", "스무 살", "제 삼 권", "십삼 시", "삼 시장"]


def test_sentences_are_read_with_latin_words_and_dependent_nouns():
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    texts = ["할 수 있다, 서울 수도!", "iPhone을 샀다."]
    first, second = phonemes.phonemize([normalise(text, "ko") for text in texts], "ko")
    assert first == "hal s͈u itt͈a, sʌul sudo!"
    assert "fo͡ʊnɯl satt͈a." in second
    tokenizer = Tokenizer.build(["ko"], "phonemes")
    assert tokenizer.readers == ("ko",)
    assert not tokenizer.unknown("찌개와 의사가 쉬는 뺄셈, 꽃밭!", "ko")
    words = phonemes.open_reader("ko").explain("국물 usb")
    assert [(w.written, w.notes) for w in words] == [("국물", "궁물"), ("usb", "English")]
