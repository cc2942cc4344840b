"""Spanish."""

from myxtts.text.language import LATIN, Language, SymbolWords, words

SPANISH = Language(
    code="es",
    name="Spanish",
    greeting="Hola, ¿cómo estás?",
    alphabet=LATIN + "áéíñóúü",
    espeak_voice="es",
    num2words_code="es",
    months=(
        *"enero febrero marzo abril mayo junio".split(),
        *"julio agosto septiembre octubre noviembre diciembre".split(),
    ),
    date="{day} de {month} de {year}",
    clock="{hour} {minute}",
    version=1,
    symbol_words=SymbolWords(
        minus="menos",
        point="coma",
        percent="{} por ciento",
        ampersand="y",
        dollar="dólares",
        euro="euros",
        pound="libras",
        has_decimal_comma=True,
    ),
    abbreviations=words("sr sra srta dr dra prof ud uds d dña av"),
    frequent_words=words(
        "de la que el en y a los del se las por un para con no una su al lo como más pero sus le "
        "ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien "
        "desde todo nos durante todos uno les ni contra otros ese eso ante ellos e esto mí antes "
        "algunos qué unos yo otro otras otra él tanto esa estos mucho quienes nada muchos cual "
        "poco ella estar estas algunas algo nosotros mi mis tú te ti tu tus ellas es son era "
        "eran fue fueron ser está están estaba ha han había tiene tienen hacer hace puede pueden "
        "así bien aquí ahora siempre después cada aunque mientras dijo años día hombre vez dos "
        "tres casa nunca usted ustedes señor soy eres somos"
    ),
)
