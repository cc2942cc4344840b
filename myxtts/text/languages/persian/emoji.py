"""Emoji: dropped, or named in Persian where MYXTTS_EMOJI is `named`."""

import os
import re

SETTING = "MYXTTS_EMOJI"
_NAMES = {
    **{
        "😂": "خنده با اشک",
        "😀": "لبخند",
        "😃": "لبخند",
        "😄": "خنده",
        "😁": "خنده",
        "🙂": "لبخند",
    },
    **{"😊": "لبخند", "😉": "چشمک", "😍": "چشم‌های عاشق", "😘": "بوسه", "😎": "عینک آفتابی"},
    **{"😢": "گریه", "😭": "گریه شدید", "😡": "عصبانی", "😱": "وحشت", "🤔": "فکر", "😴": "خواب"},
    **{
        "❤": "قلب",
        "💔": "قلب شکسته",
        "💙": "قلب آبی",
        "💚": "قلب سبز",
        "🌹": "گل رز",
        "🌸": "شکوفه",
    },
    **{
        "👍": "لایک",
        "👎": "دیس‌لایک",
        "👏": "دست زدن",
        "🙏": "دست‌های دعا",
        "👌": "عالی",
        "✌": "پیروزی",
    },
    **{"🔥": "آتش", "🎉": "جشن", "🎂": "کیک تولد", "⚽": "توپ فوتبال", "☀": "خورشید", "🌙": "ماه"},
    **{
        "⭐": "ستاره",
        "✅": "تیک سبز",
        "❌": "ضربدر قرمز",
        "⚠": "هشدار",
        "📞": "تلفن",
        "🚗": "ماشین",
    },
}
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u20e3\U000e0020-\U000e007f]"
)


def is_named() -> bool:
    """Whether emoji are named instead of dropped."""
    return os.environ.get(SETTING, "dropped") == "named"


def say_emoji(text: str) -> str:
    """Name or drop the emoji of a text."""
    if not _EMOJI.search(text):
        return text
    named = is_named()
    return _EMOJI.sub(lambda match: f" {_NAMES.get(match[0], '')} " if named else " ", text)
