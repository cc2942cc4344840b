"""Units of measurement behind a number, and Latin acronyms, in Persian words."""

import re

from myxtts.text.languages.persian.latin import spell_latin

_UNITS = {
    **{"km/h": "کیلومتر بر ساعت", "kmh": "کیلومتر بر ساعت", "m/s": "متر بر ثانیه"},
    **{"km": "کیلومتر", "cm": "سانتی‌متر", "mm": "میلی‌متر", "m": "متر", "nm": "نانومتر"},
    **{"kg": "کیلوگرم", "mg": "میلی‌گرم", "g": "گرم", "gr": "گرم", "kcal": "کیلوکالری"},
    **{"ml": "میلی‌لیتر", "cc": "سی‌سی", "lit": "لیتر", "L": "لیتر", "l": "لیتر"},
    **{"km2": "کیلومتر مربع", "m2": "متر مربع", "m3": "متر مکعب", "ha": "هکتار"},
    **{"kB": "کیلوبایت", "KB": "کیلوبایت", "MB": "مگابایت", "GB": "گیگابایت", "TB": "ترابایت"},
    **{"Hz": "هرتز", "kHz": "کیلوهرتز", "MHz": "مگاهرتز", "GHz": "گیگاهرتز"},
    **{"W": "وات", "kW": "کیلووات", "MW": "مگاوات", "V": "ولت", "A": "آمپر", "kWh": "کیلووات ساعت"},
    **{
        "°C": "درجه سانتی‌گراد",
        "°F": "درجه فارنهایت",
        "°": "درجه",
        "dB": "دسی‌بل",
        "Mbps": "مگابیت بر ثانیه",
    },
    **{"min": "دقیقه", "sec": "ثانیه", "s": "ثانیه", "h": "ساعت", "AM": "صبح", "PM": "بعد از ظهر"},
    **{"am": "صبح", "pm": "بعد از ظهر", "x": "ایکس", "G": "جی", "K": "کا", "k": "کا"},
    **{"USD": "دلار", "EUR": "یورو", "GBP": "پوند", "IRR": "ریال", "IRT": "تومان", "inch": "اینچ"},
}
_NAMES = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_UNIT = re.compile(rf"(?<=\d)\s?({_NAMES})(?![A-Za-z0-9])")
_POWERS = {"²": " مربع", "³": " مکعب"}
_POWER = re.compile("(?<=متر)([²³])")
_SUPERSCRIPT = str.maketrans("²³", "23")
_RATE = re.compile(r"(متر|گرم|لیتر|تومان|ریال|دلار|بیت)/(?=ساعت|ثانیه|دقیقه|روز|متر|کیلو|سال)")
# Acronyms that are said as words; others are spelled by their letters.
_WORDS = frozenset("NASA NATO UNESCO UNICEF FIFA UEFA OPEC RAM SIM GIF LASER RADAR COVID".split())
_ACRONYM = re.compile(r"(?<![A-Za-z])[A-Z]{2,5}(?![A-Za-z])")
_DOTTED = re.compile(r"(?<![A-Za-z.])(?:[A-Z]\.){2,5}(?![A-Za-z])")


def say_units(text: str) -> str:
    """Say units that follow a number; the number itself is left for other rules."""
    text = _POWER.sub(lambda match: _POWERS[match[1]], text).translate(_SUPERSCRIPT)
    text = _UNIT.sub(lambda match: f" {_UNITS[match[1]]}", text)
    return _RATE.sub(r"\1 بر ", text)


def say_acronyms(text: str) -> str:
    """Spell Latin acronyms by the names of their letters: "USB" is "یو اس بی"."""
    text = _DOTTED.sub(lambda match: match[0].replace(".", ""), text)
    return _ACRONYM.sub(_spell, text)


def _spell(match: re.Match[str]) -> str:
    word = match[0]
    return word if word in _WORDS else f" {spell_latin(word.lower())} "
