"""Hindi."""

from myxtts.text.language import Language, SymbolWords, span

_ALPHABET = span(0x0901, 0x0939) + span(0x093C, 0x094D) + span(0x0950, 0x0950)
_ALPHABET += span(0x0958, 0x0963)

HINDI = Language(
    code="hi",
    name="Hindi",
    greeting="नमस्ते, आप कैसे हैं?",
    script="Devanagari",
    alphabet=_ALPHABET,
    espeak_voice="hi",
    espeak_repairs=(("r.", "ɽ"),),
    months=(
        *"जनवरी फरवरी मार्च अप्रैल मई जून".split(),
        *"जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर".split(),
    ),
    clock="{hour} बजकर {minute} मिनट",
    full_hour="{hour} बजे",
    version=2,
    abbreviation_words={
        "डॉ.": "डॉक्टर",
        "प्रो.": "प्रोफेसर",
        "श्री.": "श्री",
    },
    symbol_words=SymbolWords(
        minus="ऋण",
        point="दशमलव",
        percent="{} प्रतिशत",
        ampersand="और",
        dollar="डॉलर",
        euro="यूरो",
        pound="पाउंड",
    ),
)
