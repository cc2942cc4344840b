"""The languages that can be spoken: alphabet, espeak voice and number speller of each."""

import difflib
from dataclasses import dataclass

from myxtts.text.errors import TextError


@dataclass(frozen=True)
class Language:
    """One language; `is_open_script` means that no alphabet lists all of its characters."""

    code: str
    name: str
    alphabet: str
    espeak_voice: str
    num2words_code: str | None
    is_open_script: bool = False


def get_language(code: str) -> Language:
    """Look a language up, or say which ones there are."""
    if code in LANGUAGES:
        return LANGUAGES[code]
    near = difflib.get_close_matches(str(code).lower(), LANGUAGES, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise TextError(f"unknown language {code!r}.{hint} Known languages: {', '.join(LANGUAGES)}.")


def greeting(code: str) -> str:
    """A short text to try a voice of a language with; an unknown one is greeted in English."""
    return _GREETINGS.get(code, _GREETINGS["en"])


def _span(first: int, last: int) -> str:
    """All characters from one code point to another, both included."""
    return "".join(map(chr, range(first, last + 1)))


_LATIN = "abcdefghijklmnopqrstuvwxyz"
_PERSIAN = "آابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیءئؤ\u064b\u200c"
_ARABIC = "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي" + _span(0x064B, 0x0652) + "\u0670"
_RUSSIAN = "абвгдежзийклмнопрстуфхцчшщъыьэюяё"
_HINDI = _span(0x0901, 0x0939) + _span(0x093C, 0x094D) + _span(0x0950, 0x0950)
_HINDI += _span(0x0958, 0x0963)
_KANA = _span(0x3041, 0x3096) + _span(0x30A1, 0x30FA) + "ー"
# Conjoining jamo: the tokenizer takes Korean syllables apart, 67 symbols instead of 11,172.
_JAMO = _span(0x1100, 0x1112) + _span(0x1161, 0x1175) + _span(0x11A8, 0x11C2)

LANGUAGES: dict[str, Language] = {
    language.code: language
    for language in (
        # English and Persian numbers are spelled by this package itself.
        Language("en", "English", _LATIN, "en-us", None),
        Language("fa", "Persian", _PERSIAN, "fa", None),
        Language("es", "Spanish", _LATIN + "áéíñóúü", "es", "es"),
        Language("fr", "French", _LATIN + "àâæçèéêëîïôùûüÿœ", "fr-fr", "fr"),
        Language("de", "German", _LATIN + "ßäöü", "de", "de"),
        Language("it", "Italian", _LATIN + "àèéìíîòóùú", "it", "it"),
        Language("pt", "Portuguese", _LATIN + "àáâãçéêíóôõúü", "pt-br", "pt_BR"),
        Language("pl", "Polish", _LATIN + "óąćęłńśźż", "pl", "pl"),
        Language("tr", "Turkish", _LATIN + "âçîöûüğış", "tr", "tr"),
        Language("ru", "Russian", _RUSSIAN, "ru", "ru"),
        Language("nl", "Dutch", _LATIN + "áäèéëíïóöúü", "nl", "nl"),
        Language("cs", "Czech", _LATIN + "áéíóúýčďěňřšťůž", "cs", "cs"),
        Language("ar", "Arabic", _ARABIC, "ar", "ar"),
        Language("zh-cn", "Chinese", _LATIN, "cmn", None, is_open_script=True),
        Language("hu", "Hungarian", _LATIN + "áéíóöúüőű", "hu", "hu"),
        Language("ko", "Korean", _JAMO, "ko", "ko", is_open_script=True),
        Language("ja", "Japanese", _KANA, "ja", "ja", is_open_script=True),
        Language("hi", "Hindi", _HINDI, "hi", None),
    )
}

_GREETINGS = {
    "en": "Hello, how are you?",
    "fa": "سلام، حال شما چطور است؟",
    "es": "Hola, ¿cómo estás?",
    "fr": "Bonjour, comment allez-vous ?",
    "de": "Hallo, wie geht es dir?",
    "it": "Ciao, come stai?",
    "pt": "Olá, como você está?",
    "pl": "Cześć, jak się masz?",
    "tr": "Merhaba, nasılsın?",
    "ru": "Привет, как дела?",
    "nl": "Hallo, hoe gaat het met je?",
    "cs": "Ahoj, jak se máš?",
    "ar": "مرحبا، كيف حالك؟",
    "zh-cn": "你好，你好吗？",
    "hu": "Szia, hogy vagy?",
    "ko": "안녕하세요, 잘 지내세요?",
    "ja": "こんにちは。おげんきですか。",
    "hi": "नमस्ते, आप कैसे हैं?",
}
