"""Sentences to read aloud, chosen so that few of them hold all sounds of a language."""

from collections.abc import Sequence

# Our own, with the sounds that everyday sentences seldom have.
OWN = {
    "en": (
        "The vision of a beige garage gave her no pleasure.",
        "Both brothers breathe the thin northern air with ease.",
        "Joyful boys enjoy noisy toys and avoid the choir.",
        "Which judge chose the huge orange chair by the church?",
        "A young linguist was singing about a long, strange thing.",
        "Your poor neighbour can hear four deer near the fair.",
        "How now, said the proud owl above the brown house.",
        "She usually measures the azure glass on Thursday.",
        "Could you put that good book on the wooden hook?",
        "Why did the shy guide hide five white kites?",
        "Go slowly over the cold, old stone road home.",
        "Quick foxes mix wax with six boxes of yellow zinc.",
        "The nurse heard the first bird chirp early in the church yard.",
        "Twelve twins shrugged, and three threw thick threads through.",
        "Father's calm palm tree stood far from the dark park.",
    ),
    "fa": (
        "ژاله دیروز یک پالتوی بژ و ژاکت گرم خرید.",
        "چرا قایق کوچک ما روی آب شور دریا غرق شد؟",
        "پدربزرگ هر صبح با شوق از باغ گیلاس می‌چیند.",
        "خواهرم خانه‌ی بزرگ و روشنی در خیابان ظفر دارد.",
        "صدای رعد و برق از پشت کوه‌های بلند می‌آمد.",
        "معلم جدید ما همیشه آرام و شمرده حرف می‌زند.",
        "گنجشک‌ها زیر برف سفید دنبال دانه می‌گشتند.",
        "لطفاً چای داغ و نان تازه را روی میز بگذارید.",
        "فردا عصر با قطار ساعت پنج به مشهد می‌رویم.",
        "نوشتن این نامه دو ساعت و نیم طول کشید.",
        "آیا تا به حال ستاره‌ی دنباله‌دار دیده‌ای؟",
        "موج‌های آبی آهسته به ساحل شنی می‌رسیدند.",
    ),
}


def choose_prompts(sentences: Sequence[str], sounds: Sequence[str], count: int) -> list[str]:
    """The sentences that together have the most sounds, in the order in which to read them.

    `sounds` are those of each sentence, one character each. Greedily: whichever adds most pairs of
    neighbouring sounds per sound comes next, and a single sound that is new counts most.
    """
    units = [_units(one) for one in sounds]
    left, covered = list(range(len(sentences))), set[str]()
    chosen: list[str] = []
    while left and len(chosen) < count:
        best = max(left, key=lambda at: (_gain(units[at], covered, len(sounds[at])), -at))
        covered |= units[best]
        left.remove(best)
        chosen.append(sentences[best])
    return chosen


def _units(sounds: str) -> set[str]:
    spoken = "".join(letter if letter.isalpha() else " " for letter in sounds)
    single = {letter for letter in spoken if letter != " "}
    pairs = (spoken[at : at + 2] for at in range(len(spoken) - 1))
    return single | {pair for pair in pairs if " " not in pair}


def _gain(units: set[str], covered: set[str], length: int) -> float:
    """New units for each sound that has to be read; a single sound counts as ten pairs."""
    return sum(10.0 if len(one) == 1 else 1.0 for one in units - covered) / max(20, length)
