"""How Korean words sound: the rules of standard pronunciation, from spelling to spelling to IPA.

A syllable is [onset, vowel, coda] in compatibility letters; an empty onset is "ㅇ", an empty coda
"". Rules that need the parts of a word (compounds, stems) are a list of words that have them.
"""

Syllable = list[str]

_ONSETS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_CODAS = ["", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"]
_FIRST, _LAST = 0xAC00, 0xD7A3

_CLUSTERS = {
    **{"ㄳ": "ㄱㅅ", "ㄵ": "ㄴㅈ", "ㄶ": "ㄴㅎ", "ㄺ": "ㄹㄱ", "ㄻ": "ㄹㅁ", "ㄼ": "ㄹㅂ"},
    **{"ㄽ": "ㄹㅅ", "ㄾ": "ㄹㅌ", "ㄿ": "ㄹㅍ", "ㅀ": "ㄹㅎ", "ㅄ": "ㅂㅅ"},
}
_CLOSED = {
    **dict.fromkeys("ㄱㄲㅋㄳㄺ", "ㄱ"),
    **dict.fromkeys("ㄷㅅㅆㅈㅊㅌㅎ", "ㄷ"),
    **dict.fromkeys("ㅂㅍㅄㄿ", "ㅂ"),
    **dict.fromkeys("ㄴㄵㄶ", "ㄴ"),
    **dict.fromkeys("ㄹㄼㄽㄾㅀ", "ㄹ"),
    **dict.fromkeys("ㅁㄻ", "ㅁ"),
    **{"ㅇ": "ㅇ", "": ""},
}
_TENSE = dict(zip("ㄱㄷㅂㅅㅈ", "ㄲㄸㅃㅆㅉ", strict=True))
_ASPIRATED = dict(zip("ㄱㄷㅂㅈ", "ㅋㅌㅍㅊ", strict=True))
_NASAL = dict(zip("ㄱㄷㅂ", "ㅇㄴㅁ", strict=True))
_TENSING = frozenset("ㄱㄲㅋㄳㄺㄷㅅㅆㅈㅊㅌㅂㅍㅄㄿㄵㄼㄾ")
_YS = frozenset("ㅑㅕㅛㅠㅖㅒㅣ")
# A noun keeps its k before a suffix, a verb its l: 닭과, but 맑게. Nouns keep the plain onset too.
_NOUNS_IN_K, _NOUNS_IN_M = frozenset("닭흙칡슭"), frozenset("삶앎")
_SUFFIXES_IN_L = frozenset("란량력론료례로")


def pronounce(word: str) -> str:
    """Write a word of Hangul as it sounds: "국물" is "궁물"."""
    word = _respell(word)
    syllables = [_split(letter) for letter in word]
    for place in range(len(syllables) - 1):
        _join(syllables[place], syllables[place + 1], word[place], word[place + 1], place)
    for place, syllable in enumerate(syllables):
        syllable[2] = _CLOSED[syllable[2]]
        syllable[1] = _vowel(syllable, place, len(syllables), word)
    return "".join(map(_compose, syllables))


def _join(left: Syllable, right: Syllable, spelled: str, following: str, place: int) -> None:
    """Change the coda of a syllable and the onset of the next as they meet."""
    for rule in (_palatalise, _meet_h, _link):
        if rule(left, right):
            return
    coda, onset = left[2], right[0]
    is_noun = spelled in _NOUNS_IN_K or spelled in _NOUNS_IN_M
    if coda == "ㄻ" and not is_noun or coda in _TENSING:
        right[0] = _TENSE.get(onset, onset)
    if coda == "ㄺ" and onset == "ㄱ" and not is_noun:
        coda = "ㄹ"
    if spelled == "밟" or spelled == "넓" and following in "죽둥적":
        coda = "ㅂ"
    left[2] = _CLOSED[coda]
    _assimilate(left, right, following, place)


def _palatalise(left: Syllable, right: Syllable) -> bool:
    """같이 is 가치, 굳이 구지, 닫혀 다처."""
    if right[1] not in "ㅣㅕ" or left[2] not in ("ㄷ", "ㅌ", "ㄾ") or right[0] not in "ㅇㅎ":
        return False
    if right[0] == "ㅎ" and left[2] != "ㄷ":
        return False
    right[0] = "ㅈ" if left[2] == "ㄷ" and right[0] == "ㅇ" else "ㅊ"
    left[2] = "ㄹ" if left[2] == "ㄾ" else ""
    return True


def _meet_h(left: Syllable, right: Syllable) -> bool:
    """놓다 is 노타, 좋은 조은, 입학 이팍."""
    coda, onset = left[2], right[0]
    if coda in ("ㅎ", "ㄶ", "ㅀ"):
        rest = {"ㅎ": "", "ㄶ": "ㄴ", "ㅀ": "ㄹ"}[coda]
        if onset in _ASPIRATED and onset != "ㅂ":
            left[2], right[0] = rest, _ASPIRATED[onset]
        elif onset == "ㅅ":
            left[2], right[0] = rest, "ㅆ"
        elif onset == "ㅇ":
            left[2], right[0] = "", rest or "ㅇ"
        elif onset == "ㄴ":
            left[2], right[0] = (rest, "ㄹ") if rest == "ㄹ" else ("ㄴ", "ㄴ")
        else:
            return False
        return True
    if onset != "ㅎ" or _CLOSED[coda] not in "ㄱㄷㅂㄹㄴ" or not coda:
        return False
    last = _CLUSTERS.get(coda, coda)[-1]
    closed = last if last == "ㅈ" else _CLOSED[last]
    if closed not in _ASPIRATED:
        return False
    left[2] = _CLUSTERS[coda][0] if coda in _CLUSTERS else ""
    right[0] = _ASPIRATED[closed]
    return True


def _link(left: Syllable, right: Syllable) -> bool:
    """Move a coda to a syllable without onset: 옷이 is 오시, 값이 갑씨."""
    coda = left[2]
    if right[0] != "ㅇ" or coda in ("", "ㅇ"):
        return False
    if coda in _CLUSTERS:
        left[2], moved = tuple(_CLUSTERS[coda])
        right[0] = "ㅆ" if moved == "ㅅ" else moved
    else:
        left[2], right[0] = "", coda
    return True


def _assimilate(left: Syllable, right: Syllable, following: str, place: int) -> None:
    """국물 is 궁물, 독립 동닙, 신라 실라, 칼날 칼랄, 생산량 생산냥."""
    coda, onset = left[2], right[0]
    if onset == "ㄹ" and (coda in _NASAL or coda in ("ㅁ", "ㅇ")):
        right[0] = onset = "ㄴ"
    if onset in "ㄴㅁ" and coda in _NASAL:
        left[2] = _NASAL[coda]
    elif coda == "ㄴ" and onset == "ㄹ":
        if place and following in _SUFFIXES_IN_L:
            right[0] = "ㄴ"
        else:
            left[2] = "ㄹ"
    elif coda == "ㄹ" and onset == "ㄴ":
        right[0] = "ㄹ"


def _vowel(syllable: Syllable, place: int, count: int, word: str) -> str:
    """희망 is 히망, 주의 주이, 우리의 우리에, 시계 시게, 가져 가저."""
    onset, vowel, coda = syllable
    if vowel == "ㅢ" and not (place == 0 and onset == "ㅇ"):
        is_particle = place == count - 1 and not coda and word[place] == "의" and place
        return "ㅔ" if is_particle and word not in _NOUNS_IN_UI else "ㅣ"
    if vowel == "ㅖ" and onset not in "ㅇㄹ":
        return "ㅔ"
    if onset in "ㅈㅉㅊ" and vowel in "ㅑㅕㅛㅠ":
        return dict(zip("ㅑㅕㅛㅠ", "ㅏㅓㅗㅜ", strict=True))[vowel]
    return vowel


def _respell(word: str) -> str:
    """Write what no rule finds as it sounds: compounds, Chinese words, numbers."""
    for spelled, sounded in _SPELLINGS.items():
        if spelled in word:
            word = word.replace(spelled, sounded)
    return word


def _split(letter: str) -> Syllable:
    number = ord(letter) - _FIRST
    onset, rest = divmod(number, 21 * 28)
    vowel, coda = divmod(rest, 28)
    return [_ONSETS[onset], _VOWELS[vowel], _CODAS[coda]]


def _compose(syllable: Syllable) -> str:
    onset, vowel, coda = syllable
    number = (_ONSETS.index(onset) * 21 + _VOWELS.index(vowel)) * 28 + _CODAS.index(coda)
    return chr(_FIRST + number)


def to_ipa(sounded: str) -> str:
    """Write in IPA what `pronounce` returned; plain stops are voiced between voiced sounds."""
    parts: list[str] = []
    before = ""
    for letter in sounded:
        onset, vowel, coda = _split(letter)
        is_voiced = bool(parts) and before in ("", *"ㄴㄹㅁㅇ")
        said = _ONSET_IPA[onset]
        if is_voiced:
            said = _VOICED.get(onset, said)
        if onset == "ㄹ" and before == "ㄹ":
            said = "l"
        if onset == "ㅅ" and (vowel in _YS or vowel == "ㅟ"):
            said = "ɕ"
        parts += [said, _VOWEL_IPA[vowel], _CODA_IPA[coda]]
        before = coda
    return "".join(parts)


def is_syllable(letter: str) -> bool:
    """Whether a character is a whole syllable of Hangul."""
    return _FIRST <= ord(letter) <= _LAST


def ends_in_l(letter: str) -> bool:
    """Whether a syllable ends in an l."""
    return _split(letter)[2] == "ㄹ"


_ONSET_IPA = dict(
    zip(
        _ONSETS,
        "k k͈ n t t͈ ɾ m p p͈ s s͈ _ t͡ɕ t͡ɕ͈ t͡ɕʰ kʰ tʰ pʰ h".replace("_", "").split(" "),
        strict=True,
    )
)
_VOICED = {"ㄱ": "ɡ", "ㄷ": "d", "ㅂ": "b", "ㅈ": "d͡ʑ"}
# Speakers of today make no difference between ㅐ and ㅔ, nor between ㅙ, ㅚ and ㅞ.
_VOWEL_IPA = dict(
    zip(
        _VOWELS,
        "a e ja je ʌ e jʌ je o wa we we jo u wʌ we wi ju ɯ ɯi i".split(),
        strict=True,
    )
)
_CODA_IPA = {"": "", "ㄱ": "k", "ㄴ": "n", "ㄷ": "t", "ㄹ": "l", "ㅁ": "m", "ㅂ": "p", "ㅇ": "ŋ"}

_NOUNS_IN_UI = frozenset(
    "회의 주의 강의 동의 정의 합의 논의 문의 의의 거의 편의 창의 예의 항의 협의 결의 토의 유의 "
    "호의 성의 고의 심의 건의 명의 민주주의 자본주의 사회주의 부주의".split()
)
_SPELLINGS = dict(
    pair.split(":")
    for pair in (
        # An n between the parts of a compound.
        "꽃잎:꼰닙 깻잎:깬닙 나뭇잎:나문닙 솜이불:솜니불 한여름:한녀름 담요:담뇨 색연필:생년필 "
        "식용유:시굥뉴 서울역:서울력 물약:물략 알약:알략 지하철역:지하철력 부산역:부산녁 "
        "강남역:강남녁 집안일:지반닐 앞일:암닐 옛일:옌닐 두통약:두통냑 "
        # A coda that closes before it is linked.
        "맛없:마덥 멋없:머덥 겉옷:거돋 첫인상:처딘상 윗옷:위돋 몇월:며둴 "
        # Numbers.
        "십육:심뉵 백육:뱅뉵 천육:천뉵 만육:만뉵 열여섯:열려섣 열여덟:열려덜 열일곱:열릴곱 "
        "열둘:열뚤 열두:열뚜 열셋:열쎋 열세:열쎄 열다섯:열따섣 스물여섯:스물려섣 "
        "스물여덟:스물려덜 스물일곱:스물릴곱 여덟:여덜 팔십:팔씹 칠십:칠씹 일시:일씨 일조:일쪼 "
        # Chinese words with l before d, s or j.
        "갈등:갈뜽 발전:발쩐 발달:발딸 결정:결쩡 실수:실쑤 물질:물찔 활동:활똥 철도:철또 출장:출짱 "
        "열심:열씸 절대:절때 출석:출썩 실시:실씨 실제:실쩨 일정:일쩡 일주일:일쭈일 일상:일쌍 "
        "질서:질써 설정:설쩡 글자:글짜 발생:발쌩 달성:달썽 열정:열쩡 출시:출씨 출신:출씬 별도:별또 "
        "필수:필쑤 솔직:솔찍 결제:결쩨 경찰서:경찰써 "
        # Other tense sounds.
        "한자:한짜 문법:문뻡 헌법:헌뻡 사건:사껀 조건:조껀 인기:인끼 여권:여꿘 평가:평까 "
        "물고기:물꼬기 눈동자:눈똥자 손가락:손까락 발가락:발까락 아침밥:아침빱 비빔밥:비빔빱 "
        "김밥:김빱 술집:술찝 빵집:빵찝 길가:길까 바닷가:바다까 봄비:봄삐 "
        # Stems in m.
        "남다:남따 남고:남꼬 남지:남찌 넘다:넘따 넘고:넘꼬 넘지:넘찌 숨다:숨따 숨고:숨꼬 심다:심따 "
        "심고:심꼬 담다:담따 담고:담꼬 감다:감따 감고:감꼬 참다:참따 참지:참찌 검다:검따 검고:검꼬"
    ).split()
)
