"""Turkish."""

from myxtts.text.language import LATIN, Language, SymbolWords, words

# num2words joins the words of a number.
_NUMBERS = (
    "milyon|milyar|yüz|bin|on|yirmi|otuz|kırk|elli|altmış|yetmiş|seksen|doksan|"
    "bir|iki|üç|dört|beş|altı|yedi|sekiz|dokuz"
)
_BEFORE_WORD = rf"(?<=\w)(?<!mily)(?=(?:{_NUMBERS})(?=\W|$|{_NUMBERS}))"

TURKISH = Language(
    code="tr",
    name="Turkish",
    greeting="Merhaba, nasılsın?",
    alphabet=LATIN + "âçîöûüğış",
    espeak_voice="tr",
    num2words_code="tr",
    months=(
        *"ocak şubat mart nisan mayıs haziran".split(),
        *"temmuz ağustos eylül ekim kasım aralık".split(),
    ),
    number_repairs=((_BEFORE_WORD, " "),),
    clock="{hour} {minute}",
    version=2,
    abbreviation_words={
        "Dr.": "doktor",
        "Prof.": "profesör",
        "Doç.": "doçent",
        "Av.": "avukat",
        "Sn.": "sayın",
        "vb.": "ve benzeri",
        "vs.": "vesaire",
        "bkz.": "bakınız",
        "örn.": "örneğin",
    },
    symbol_words=SymbolWords(
        minus="eksi",
        point="virgül",
        percent="yüzde {}",
        ampersand="ve",
        dollar="dolar",
        euro="avro",
        pound="sterlin",
        has_decimal_comma=True,
    ),
    lower_case={"I": "ı", "İ": "i"},
    abbreviations=words("dr prof doç av sn bkz örn"),
    has_dotted_ordinals=True,
    has_plain_ordinals=True,
    frequent_words=words(
        "ve bir bu da de için ile çok daha gibi en o ne var olarak olan ama kadar değil ki sonra "
        "her ya mi mı mu mü ben sen biz siz onlar onun benim senin bizim bana sana ona onu beni "
        "seni şey şu diye yok iki üç önce olduğu oldu olur olacak bütün hiç böyle öyle şöyle "
        "nasıl neden niçin nerede zaman gün yıl ev adam insan iş göre kendi kendine artık bile "
        "ancak çünkü eğer hem veya ise dedi etti vardı yoktu değildi idi tarafından üzerinde "
        "içinde altında arasında karşı doğru başka bazı birçok biraz şimdi burada orada evet "
        "hayır büyük iyi yeni ilk son ederim"
    ),
)
