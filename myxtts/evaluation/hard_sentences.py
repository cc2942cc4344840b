"""Sentences that voices tend to skip, repeat or never end, each with what is hard about it."""

from dataclasses import dataclass

from myxtts.errors import UserError


@dataclass(frozen=True, slots=True)
class HardSentence:
    """A sentence and the kind of difficulty that it has."""

    kind: str
    text: str


def hard_sentences(language: str) -> tuple[HardSentence, ...]:
    """Return the hard sentences of a language, kind by kind."""
    if language not in _SENTENCES:
        raise UserError(
            f"there are no hard sentences in {language!r}, only in {', '.join(_SENTENCES)}"
        )
    by_kind = _SENTENCES[language]
    return tuple(HardSentence(kind, text) for kind, texts in by_kind.items() for text in texts)


_ENGLISH = {
    "very short": (
        "No.",
        "Why?",
        "Oh!",
        "I am.",
    ),
    "very long": (
        "When the last of the wagons had crossed the river and the dust had settled on the road "
        "behind them, the old miller, who had watched the whole morning from his window without "
        "a word, put on his coat, called his dog, and walked down to the water to see whether "
        "anything that the travellers had thrown away could still be of use to him.",
        "She told him about the garden, about the two apple trees that never agreed on when to "
        "blossom, about the neighbour who counted every pear that fell over the wall, about the "
        "summer when the well ran dry and the whole street carried buckets, and about the winter "
        "after it, which nobody had expected to be so long, so quiet and so white.",
        "If the bridge is closed, which happens whenever the wind is strong, and if the ferry is "
        "late, which happens whenever the wind is weak, then the only way to reach the island "
        "before noon is to ask the fishermen, who will want to be paid, and who will tell you, "
        "all the way across, how much better everything was when there was no bridge at all.",
    ),
    "repeated words": (
        "Very, very, very, very slowly the door opened.",
        "No, no, no, no, no, that is not what I said.",
        "What he had had she had, and what she had had he had had too.",
        "Row after row after row after row of empty chairs.",
    ),
    "numbers": (
        "The train leaves at 7:45 from platform 12 and arrives at 11:05.",
        "In 1999 it cost $3.75, and by 2024 it was $18.20.",
        "Call 555 0187 before the 21st, or pay 6.5% more.",
        "About 1,000,000 of the 8,123,456 votes came in after 10 p.m.",
    ),
    "punctuation": (
        "Wait... what? You mean - no, surely not!",
        '"Stop," he said (rather loudly); "or don\'t: it\'s up to you."',
        "Bread, milk, eggs, salt, tea, soap, rope, nails, paint: nothing else?",
        "One; two; three - four, five. Six? Seven! Eight...",
    ),
    "mixed scripts": (
        "The sign said خوش آمدید above the door.",
        "He wrote Привет on the first page and naïve café on the last.",
        "In Persian, کتاب is a book and قلم is a pen.",
    ),
    "tongue twisters": (
        "Six slick snails silently slid past sixty sleeping sheep.",
        "Thirty thrifty thrushes threaded thick thorns through the thatch.",
        "Brisk brave brigadiers brought broad bright brushes.",
        "Where were the weary weavers when the wet wool was weighed?",
    ),
    "abbreviations": (
        "Dr. Brown and Mrs. Gray met Mr. Green at No. 5 St. James St.",
        "The FBI asked NASA, and NASA asked the BBC.",
        "See p. 12, fig. 3, vol. 2, etc.",
    ),
    "spelled out": (
        "My name is Quigley: Q, U, I, G, L, E, Y.",
        "The code is A 7 X 9 9 B, in capitals.",
        "A, B, C, D, E, F, G, and so on until Z.",
    ),
}
_PERSIAN = {
    "very short": (
        "نه.",
        "چرا؟",
        "آه!",
        "من هستم.",
    ),
    "very long": (
        "وقتی آخرین گاری از رودخانه گذشت و گرد و خاک روی جاده نشست، آسیابان پیر که تمام صبح "
        "بی‌آنکه حرفی بزند از پنجره نگاه کرده بود، کتش را پوشید، سگش را صدا زد و به کنار آب رفت "
        "تا ببیند از چیزهایی که مسافران دور انداخته بودند چیزی به کارش می‌آید یا نه.",
        "او از باغ گفت، از دو درخت سیبی که هرگز با هم شکوفه نمی‌دادند، از همسایه‌ای که هر گلابی "
        "افتاده آن سوی دیوار را می‌شمرد، از تابستانی که چاه خشک شد و همه کوچه سطل به دست آب "
        "می‌بردند، و از زمستان پس از آن که هیچ‌کس گمان نمی‌کرد این‌قدر بلند و آرام و سفید باشد.",
        "اگر پل بسته باشد که هر وقت باد تند بوزد بسته است، و اگر قایق دیر برسد که هر وقت باد آرام "
        "باشد دیر می‌رسد، تنها راه رسیدن به جزیره پیش از ظهر این است که از ماهیگیرها بخواهی تو را "
        "ببرند، و آن‌ها در تمام راه خواهند گفت که پیش از ساختن پل همه چیز بهتر بود.",
    ),
    "repeated words": (
        "در خیلی خیلی خیلی خیلی آرام باز شد.",
        "نه، نه، نه، نه، نه، من این را نگفتم.",
        "کم کم کم کم باران گرفت و نم نم نم نم بارید.",
        "ردیف پشت ردیف پشت ردیف پشت ردیف صندلی خالی.",
    ),
    "numbers": (
        "قطار ساعت ۷:۴۵ از سکوی ۱۲ می‌رود و ساعت ۱۱:۰۵ می‌رسد.",
        "در سال ۱۳۷۸ سه هزار تومان بود و در سال ۱۴۰۳ به ۱۸۵۰۰۰ تومان رسید.",
        "از ۸٬۱۲۳٬۴۵۶ رأی حدود ۱٬۰۰۰٬۰۰۰ رأی پس از ساعت ۱۰ شمرده شد.",
        "تا روز ۲۱ خرداد ۶٫۵ درصد بیشتر می‌پردازید.",
    ),
    "punctuation": (
        "صبر کن... چی؟ یعنی - نه، امکان ندارد!",
        "«بایست»، او (کمی بلند) گفت؛ «یا نایست: خودت می‌دانی.»",
        "نان، شیر، تخم‌مرغ، نمک، چای، صابون، طناب، میخ، رنگ: دیگر هیچ؟",
        "یک؛ دو؛ سه - چهار، پنج. شش؟ هفت! هشت...",
    ),
    "mixed scripts": (
        "روی در نوشته بود Welcome و زیر آن خوش آمدید.",
        "فایل را با نام report در پوشه data ذخیره کن.",
        "گوشی را با کابل USB به لپ‌تاپ وصل کرد.",
    ),
    "tongue twisters": (
        "شش شتر سیاه سر شب سه شیشه شیر شور شستند.",
        "زن زرگر زیر زیلوی زرد زنجیر زر زیبا را زود ساخت.",
        "قاب قدیمی و قالی قرمز قهوه‌ای قصر قزوین قیمت دارد.",
        "چهار چرخ چوبی چوپان چرخید و چرخ چپ چوبی چاک برداشت.",
    ),
    "abbreviations": (
        "دکتر احمدی در سال ۵۷۰ ه.ق. و دکتر کریمی در ۱۳۰۰ ه.ش. زاده شد.",
        "ص ۱۲، ج ۲، ش ۳ را ببینید و غیره.",
        "ناسا از یونسکو پرسید و یونسکو از فیفا.",
    ),
    "spelled out": (
        "نامم سارا است: سین، الف، ر، الف.",
        "رمز آن الف ۷ ب ۹ ۹ جیم است.",
        "الف، ب، پ، ت، ث، جیم، چ، و همین‌طور تا ی.",
    ),
}
_SENTENCES = {"en": _ENGLISH, "fa": _PERSIAN}
