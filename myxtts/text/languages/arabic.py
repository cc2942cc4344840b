"""Arabic."""

from myxtts.text.language import Language, SymbolWords, span, words

_ALPHABET = "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي" + span(0x064B, 0x0652) + "\u0670"

_DAY_UNITS = "الأول الثاني الثالث الرابع الخامس السادس السابع الثامن التاسع العاشر".split()
_DAY_TEENS = "الحادي الثاني الثالث الرابع الخامس السادس السابع الثامن التاسع".split()
_HOUR_UNITS = (
    "الواحدة الثانية الثالثة الرابعة الخامسة السادسة السابعة الثامنة التاسعة العاشرة".split()
)
_HOUR_TEENS = "الحادية الثانية الثالثة الرابعة الخامسة السادسة السابعة الثامنة التاسعة".split()
_DAYS = dict(enumerate(_DAY_UNITS, start=1))
_DAYS |= {n: f"{unit} عشر" for n, unit in enumerate(_DAY_TEENS, start=11)}
_DAYS |= {20: "العشرون", 30: "الثلاثون", 31: "الحادي والثلاثون"}
_DAYS |= {n: f"{unit} والعشرون" for n, unit in enumerate(_DAY_TEENS, start=21)}
_HOURS = dict(enumerate(_HOUR_UNITS, start=1))
_HOURS |= {n: f"{unit} عشرة" for n, unit in enumerate(_HOUR_TEENS, start=11)}
_HOURS |= {20: "العشرون"}
_HOURS |= {n: f"{unit} والعشرون" for n, unit in enumerate(_HOUR_TEENS[:3], start=21)}

ARABIC = Language(
    code="ar",
    name="Arabic",
    greeting="مرحبا، كيف حالك؟",
    script="Arabic",
    alphabet=_ALPHABET,
    espeak_voice="ar",
    espeak_repairs=(("a.", "ɑ"), ("i.", "ɨ"), ("u.", "ʊ")),
    num2words_code="ar",
    months=(
        *"يناير فبراير مارس أبريل مايو يونيو".split(),
        *"يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر".split(),
    ),
    days=_DAYS,
    date="{day} من {month} {year}",
    hours=_HOURS,
    clock="{hour} و {minute} دقيقة",
    number_repairs=((r"\bو ", "و"),),
    version=2,
    abbreviation_words={
        "د.": "دكتور",
        "أ.د.": "أستاذ دكتور",
    },
    symbol_words=SymbolWords(
        minus="سالب",
        point="فاصلة",
        percent="{} بالمئة",
        ampersand="و",
        dollar="دولار",
        euro="يورو",
        pound="جنيه",
    ),
    frequent_words=words(
        "في من على إلى أن عن هذا هذه التي الذي كان كانت قد لا ما لم هو هي مع بعد كل ذلك بين عند "
        "أو ثم حتى إذا قال كما لكن غير أي منذ تلك هناك حيث لقد وقد وفي ومن الى ان او وهو"
    ),
)
