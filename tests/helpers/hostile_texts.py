"""Seeded texts that nobody would want to read aloud, for whatever normalises and tokenises."""

import random
from collections.abc import Callable, Iterator

_WORDS = "hello world سلام دنیا привет 你好 안녕 こんにちは नमस्ते Straße naïve İstanbul".split()
_BIDI = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c"
_MARKS = "\u0301\u0308\u0327\u0650\u0651\u064b\u0654\u05b0\u0e31\u1ab0\u20dd\ufe20"
_EMOJI = ["👨\u200d👩\u200d👧\u200d👦", "🏳\ufe0f\u200d🌈", "👍🏽", "🇮🇷", "1\ufe0f\u20e3", "❤\ufe0f"]
_DIGITS = "0123456789۰۱۲۳۴۵۶۷۸۹٠١٢٣٤٥٦٧٨٩०१२३४५６７８９²³①Ⅳ"
_BETWEEN = ".,/:-−+=×÷<>%٪$€£¥'′\u066b\u066c \u00a0\u202f"
_PUNCTUATION = "!?.,;:…—–-'\"()[]{}<>«»“”„‘’‹›؟،؛۔。！？、।॥¡¿*_~^|\\/#@&%٪§"
_SCRIPTS = [(0x41, 0x24F), (0x370, 0x52F), (0x5D0, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F)]
_SCRIPTS += [(0x1100, 0x11FF), (0x3040, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xAD00)]
_SCRIPTS += [(0xFB00, 0xFDFF), (0xFE70, 0xFEFF), (0xFF00, 0xFFEF), (0x10400, 0x1044F)]
_SCRIPTS += [(0x1D400, 0x1D7FF), (0x20000, 0x20100)]


def texts(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Yield `count` pairs of a name and a hostile text; the same seed gives the same ones."""
    for number in range(count):
        name = list(KINDS)[number % len(KINDS)]
        rng = random.Random(f"{seed}/{number}")
        yield f"{name}-{seed}-{number}", KINDS[name](rng)


def _huge_number(rng: random.Random) -> str:
    size = rng.choice([5, 16, 40, 300, 4301, 10_000])
    digits = "".join(rng.choices("0123456789", k=size))
    sign, unit = rng.choice(["", "-", "$", "%", "+", "0"]), rng.choice(["", "%", "th", " kg", "€"])
    return f"{sign}{digits}{unit} {digits[:9]}.{digits}"


def _number_salad(rng: random.Random) -> str:
    return "".join(rng.choice(_DIGITS + _BETWEEN) for _ in range(rng.choice([10, 200, 3000])))


def _repeated_separators(rng: random.Random) -> str:
    part = rng.choice(
        ["1,", "1.", "1/", "1-", "1:", "1,000", "۱٬۰۰۰", "12/", "09-", "1 ", "a.", "1+"]
    )
    return part * rng.choice([3, 100, 2000]) + rng.choice(["", "1", "%", "$", "م"])


def _nested_quotes(rng: random.Random) -> str:
    pairs = ["“”", "«»", "‘’", "()", "[]", "{}", "<>", '""', "''", "「」"]
    depth = rng.choice([1, 10, 2000])
    chosen = [rng.choice(pairs) for _ in range(depth)]
    inner = " ".join(rng.choices(_WORDS, k=3))
    return "".join(p[0] for p in chosen) + inner + "".join(p[1] for p in reversed(chosen))


def _bidi_controls(rng: random.Random) -> str:
    return "".join(rng.choice(_WORDS) + rng.choice(_BIDI) * rng.randint(0, 9) for _ in range(50))


def _combining_marks(rng: random.Random) -> str:
    stack = "".join(rng.choices(_MARKS, k=rng.choice([1, 30, 3000])))
    return rng.choice(["", "e", "ه", "한", " "]) + stack + rng.choice(_WORDS) + stack[:5]


def _emoji(rng: random.Random) -> str:
    return rng.choice(["", " ", "\u200d"]).join(rng.choices(_EMOJI + _WORDS, k=60))


def _mixed_scripts(rng: random.Random) -> str:
    spans = rng.choices(_SCRIPTS, k=rng.choice([5, 400]))
    return "".join(chr(rng.randint(*span)) for span in spans)


def _addresses(rng: random.Random) -> str:
    host = ".".join("".join(rng.choices("abcz-09", k=rng.randint(1, 70))) for _ in range(9))
    path = "/".join("".join(rng.choices("a%2F?&=#_~", k=9)) for _ in range(rng.choice([1, 300])))
    return rng.choice([f"https://{host}.com/{path}", f"a@b@{host}", f"www.{host}", f"{host}.org."])


def _repeated_punctuation(rng: random.Random) -> str:
    mark = "".join(rng.choices(_PUNCTUATION, k=rng.choice([1, 2, 3])))
    return rng.choice(_WORDS) + mark * rng.choice([5, 3000]) + rng.choice(["", " x", "\n"])


def _control_characters(rng: random.Random) -> str:
    odd = [chr(code) for code in (*range(32), 0x7F, 0x85, 0xAD, 0xFEFF, 0xFFFE, 0xFFFF, 0x10FFFF)]
    return "".join(rng.choice([*odd, *_WORDS]) for _ in range(200))


def _lone_surrogates(rng: random.Random) -> str:
    return "".join(rng.choice([chr(rng.randint(0xD800, 0xDFFF)), "a", "س", "5"]) for _ in range(99))


def _long_word(rng: random.Random) -> str:
    part = rng.choice(
        ["a", "ab", "ن", "می\u200c", "字", "한", "e\u0301", "A.", "x-", "l'", "ß", "1a", "а"]
    )
    return part * rng.choice([50, 500, 8000])


def _long_spaces(rng: random.Random) -> str:
    space = rng.choice([" ", "\n", "\t", "\u3000", "\u200c", "\u00a0 ", "\r\n", " \u200b"])
    return rng.choice(_WORDS) + space * rng.choice([10, 9000]) + rng.choice(["", ".", "تر", "-5"])


def _affixes(rng: random.Random) -> str:
    parts = [
        "می ",
        "ها ",
        "تر ",
        "ترین ",
        "\u200c",
        "ه\u0654",
        "\u0650",
        "۵ام ",
        "ص. ",
        "(ع)",
        "Mr. ",
    ]
    parts += ["St. ", "e.g. ", "XIV ", "5'", "i\u0307", "1st ", "½", "12/5/1368 ", "021-", "٪"]
    return "".join(rng.choices(parts, k=rng.choice([5, 800])))


def _anything(rng: random.Random) -> str:
    return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.choice([0, 1, 2, 300])))


def _any_digits(rng: random.Random) -> str:
    """Digits of one script in groups."""
    zero, size = rng.choice([0x30, 0x660, 0x6F0, 0x966, 0xFF10]), rng.choice([9, 100, 10_000])
    digits = "".join(chr(zero + rng.randrange(10)) for _ in range(size))
    mark, every = (
        rng.choice(["", ",", ".", "/", ":", "-", " ", "\u066b", "\u066c"]),
        rng.randint(1, 4),
    )
    groups = mark.join(digits[at : at + every] for at in range(0, size, every))
    return rng.choice(["", "-", "+", "$", "€", "#", "%", "№"]) + groups


def _nothing(rng: random.Random) -> str:
    return rng.choice(["", " ", "\n" * 500, "\0", "\ufeff", "\u200b" * 99])


def _markup(rng: random.Random) -> str:
    tag = rng.choice(["speak", "break", "prosody", "say-as", "script", "!ENTITY", "![CDATA["])
    values = ['time="1e9s"', 'rate="-999%"', 'src="file:///etc/passwd"', "", "/", 'x="']
    count = rng.choice([1, 300])
    return "".join(f"<{tag} {rng.choice(values)}>" for _ in range(count)) + f"word</{tag}>" * count


def _brackets(rng: random.Random) -> str:
    return "".join(rng.choices("([{<«“‘（】)]}>»”’", k=rng.choice([9, 3000])))


def _abbreviations(rng: random.Random) -> str:
    words = "Mr. Dr. e.g. U.S. No. 3. p.m. etc. ... ?! 1st 2.5kg 12:30 10/5/2020 Jan. $5m".split()
    return " ".join(rng.choices(words, k=rng.choice([5, 500])))


def _repeated_part(rng: random.Random) -> str:
    return rng.choice(_PARTS) * rng.choice([2, 50, 3000])


def _in_words(rng: random.Random) -> str:
    """Another kind of text between words of many scripts."""
    spans = [rng.choice(_SCRIPTS) for _ in range(rng.randint(2, 30))]
    words = ["".join(chr(rng.randint(*span)) for _ in range(rng.randint(1, 12))) for span in spans]
    words.insert(rng.randrange(len(words)), _of_another_kind(rng))
    return rng.choice([" ", ", ", ". ", "\n", "\n\n", "\u200c"]).join(words) + "."


def _patchwork(rng: random.Random) -> str:
    return " ".join(_of_another_kind(rng)[: rng.choice([20, 200])] for _ in range(6))


def _of_another_kind(rng: random.Random) -> str:
    makers = [make for make in KINDS.values() if make not in (_patchwork, _in_words)]
    return rng.choice(makers)(rng)


# What is written in one piece, and a rule may take for something else.
_PARTS = ". |! |a. |A. |.a| - |a\u0308\u0308|\u0e33|\u200f.|\u061c1|\udc00a|🏴\U000e0067|🇦|½|①"
_PARTS += "|ﷺ|ﬃ|㍿|Ⅷ|㎏|ẞ|İ|ŉ|\x1b[31m|\x85|\u2028|\x0b|aB|مم|漢|가|€5|&|@a|#1|×|°"
_PARTS += (
    "|http://a.b/c?d=e&|a@b.c |www.|a.b.c.|C:\\a\\|1st |22nd|3.º|1. |I. |XIV |1e9|0x1F |1,000."
)
_PARTS += "|12:30|1/2/3 |12-5-99|۱۲/۵/۱۳۶۸ |1:2:3:4|٪۲۰ |5'10\" "
_PARTS = _PARTS.split("|")


KINDS: dict[str, Callable[[random.Random], str]] = {
    "huge_number": _huge_number,
    "number_salad": _number_salad,
    "repeated_separators": _repeated_separators,
    "nested_quotes": _nested_quotes,
    "bidi_controls": _bidi_controls,
    "combining_marks": _combining_marks,
    "emoji": _emoji,
    "mixed_scripts": _mixed_scripts,
    "addresses": _addresses,
    "repeated_punctuation": _repeated_punctuation,
    "control_characters": _control_characters,
    "lone_surrogates": _lone_surrogates,
    "long_word": _long_word,
    "long_spaces": _long_spaces,
    "affixes": _affixes,
    "anything": _anything,
    "any_digits": _any_digits,
    "nothing": _nothing,
    "markup": _markup,
    "brackets": _brackets,
    "abbreviations": _abbreviations,
    "repeated_part": _repeated_part,
    "in_words": _in_words,
    "patchwork": _patchwork,
}
