"""Arabic."""

from myxtts.text.language import Language, SymbolWords, span, words

_ALPHABET = "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي" + span(0x064B, 0x0652) + "\u0670"

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
    clock="{hour} و {minute} دقيقة",
    version=1,
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
