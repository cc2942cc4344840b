"""How each language says a minus, a decimal point, a per cent sign and the common currencies."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SymbolWords:
    """The words for symbols that stand beside numbers; `{}` marks where the number goes."""

    minus: str
    point: str
    percent: str
    ampersand: str
    dollar: str
    euro: str
    pound: str
    has_decimal_comma: bool = False

    def money(self) -> dict[str, str]:
        """Map each currency sign to its word."""
        return {"$": self.dollar, "€": self.euro, "£": self.pound}


# Currencies stay in their base form: inflecting them after a number is left to the writer.
SYMBOL_WORDS = {
    "es": SymbolWords("menos", "coma", "{} por ciento", "y", "dólares", "euros", "libras", True),
    "fr": SymbolWords("moins", "virgule", "{} pour cent", "et", "dollars", "euros", "livres", True),
    "de": SymbolWords("minus", "komma", "{} prozent", "und", "dollar", "euro", "pfund", True),
    "it": SymbolWords("meno", "virgola", "{} per cento", "e", "dollari", "euro", "sterline", True),
    "pt": SymbolWords("menos", "vírgula", "{} por cento", "e", "dólares", "euros", "libras", True),
    "pl": SymbolWords("minus", "przecinek", "{} procent", "i", "dolarów", "euro", "funtów", True),
    "tr": SymbolWords("eksi", "virgül", "yüzde {}", "ve", "dolar", "avro", "sterlin", True),
    "ru": SymbolWords("минус", "запятая", "{} процентов", "и", "долларов", "евро", "фунтов", True),
    "nl": SymbolWords("min", "komma", "{} procent", "en", "dollar", "euro", "pond", True),
    "cs": SymbolWords("minus", "celá", "{} procent", "a", "dolarů", "eur", "liber", True),
    "ar": SymbolWords("سالب", "فاصلة", "{} بالمئة", "و", "دولار", "يورو", "جنيه"),
    "zh-cn": SymbolWords("负", "点", "百分之{}", "和", "美元", "欧元", "英镑"),
    "hu": SymbolWords("mínusz", "egész", "{} százalék", "és", "dollár", "euró", "font", True),
    "ko": SymbolWords("마이너스", "점", "{} 퍼센트", "그리고", "달러", "유로", "파운드"),
    "ja": SymbolWords("マイナス", "点", "{}パーセント", "と", "ドル", "ユーロ", "ポンド"),
    "hi": SymbolWords("ऋण", "दशमलव", "{} प्रतिशत", "और", "डॉलर", "यूरो", "पाउंड"),
}
