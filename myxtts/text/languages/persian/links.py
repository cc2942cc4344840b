"""The short "and" of Persian: "o" in numbers and in pairs that are one notion."""

from collections.abc import Sequence

from myxtts.text.languages.persian.numbers import is_number
from myxtts.text.languages.persian.tokens import Word

_AND = "و"
_PAIRS = frozenset(
    pair.replace("-", f" {_AND} ")
    for pair in (
        "رفت-آمد رفت-روب گفت-گو گفت-گوی گفت-گوها گفت-گوهای گفت-شنود شست-شو شست-شوی جست-جو جست-جوی "
        "جست-جوها پرس-جو حمل-نقل نقل-انتقال نقل-انتقالات سر-صدا سر-صدای سر-کار سر-سامان سر-ته "
        "آب-هوا آب-هوای خرید-فروش زد-خورد ساخت-ساز ساز-کار کسب-کار بود-نبود نام-نشان سن-سال "
        "شعر-شاعری قول-قرار داد-ستد برد-باخت پخت-پز پیچ-خم پیچ-تاب تک-تاز جنب-جوش گیر-دار "
        "کم-بیش کم-کاست تر-تازه شیب-فراز افت-خیز تار-پود تاخت-تاز مرگ-میر پست-بلند "
        "دید-بازدید دم-دستگاه زاد-ولد ضرب-شتم ضرب-جرح قلع-قمع"
    ).split()
)
_OPEN = frozenset("دو سه".split())  # numbers that end in a vowel, besides those in ye


def link(words: Sequence[Word], place: int) -> str:
    """Return how a linking "and" sounds; nothing for other words and where it is a word."""
    if words[place].text != _AND or not 0 < place < len(words) - 1:
        return ""
    before, after = words[place - 1], words[place + 1]
    if before.gap.strip() or words[place].gap.strip():
        return ""
    is_numeral = is_number(before.text) and is_number(after.text)
    if not is_numeral and f"{before.text} {_AND} {after.text}" not in _PAIRS:
        return ""
    return "jo" if before.text.endswith("ی") else "vo" if before.text in _OPEN else "o"
