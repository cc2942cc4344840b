"""French."""

from myxtts.text.language import LATIN, Language, SymbolWords, words

FRENCH = Language(
    code="fr",
    name="French",
    greeting="Bonjour, comment allez-vous ?",
    alphabet=LATIN + "àâæçèéêëîïôùûüÿœ",
    espeak_voice="fr-fr",
    num2words_code="fr",
    months=(
        *"janvier février mars avril mai juin".split(),
        *"juillet août septembre octobre novembre décembre".split(),
    ),
    ordinal_marks=dict.fromkeys(("er", "re", "e", "ème"), ("", "")),
    number_repairs=(("(vingt|cent|million)s(?=ième$)", r"\1"),),
    special_ordinals={"1er": "premier", "1re": "première"},
    days={1: "premier"},
    clock="{hour} heures {minute}",
    full_hour="{hour} heures",
    version=3,
    abbreviation_words={
        "M.": "monsieur",
        "MM.": "messieurs",
        "Mme": "madame",
        "Mlle": "mademoiselle",
        "Dr": "docteur",
        "Dr.": "docteur",
        "etc.": "et cetera",
        "p. ex.": "par exemple",
        "n°": "numéro",
    },
    symbol_words=SymbolWords(
        minus="moins",
        point="virgule",
        percent="{} pour cent",
        ampersand="et",
        dollar="dollars",
        euro="euros",
        pound="livres",
        has_decimal_comma=True,
    ),
    abbreviations=words("dr mme mlle mgr prof av bd cf"),
    frequent_words=words(
        "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce "
        "il sont avec elle mais comme on ou si leur y dont aux cette ses être fait été aussi "
        "nous vous ils elles je tu me te mon ma mes ton ta son sa notre votre leurs ces tout "
        "tous toute toutes deux même bien sans peut ont avait était très encore où quand alors "
        "après avant entre sous chez vers depuis pendant rien jamais toujours moins autre autres "
        "peu beaucoup ici là oui non faire dire voir aller c'est n'est d'un d'une qu'il qu'elle "
        "j'ai l'on s'est quelque quelques chaque celui celle ceux donc car puis déjà ainsi homme "
        "jour temps étaient avoir fut suis es sommes êtes"
    ),
)
