"""Which language texts are taken for, and when nothing is said about it."""

import pytest

from myxtts.text.guess import guess_language
from myxtts.text.languages import LANGUAGES, greeting

STORIES = {
    "en": "When the old man came back to the house, there was nobody in the garden. He looked at "
    "the door and thought that she had gone without a word. It was the first time in many years "
    "that they would not sit at the table and talk about the day.",
    "de": "Als der alte Mann nach Hause kam, war niemand im Garten. Er sah auf die Tür und dachte, "
    "dass sie ohne ein Wort gegangen war. Es war das erste Mal seit vielen Jahren, dass sie nicht "
    "am Tisch sitzen und über den Tag sprechen würden.",
    "fr": "Quand le vieil homme est rentré à la maison, il n'y avait personne dans le jardin. Il a "
    "regardé la porte et il a pensé qu'elle était partie sans un mot. C'était la première fois "
    "depuis des années qu'ils ne parlaient pas de la journée avec les enfants.",
    "es": "Cuando el viejo volvió a la casa, no había nadie en el jardín. Miró la puerta y pensó "
    "que ella se había ido sin una palabra. Era la primera vez en muchos años que no se sentaban a "
    "la mesa para hablar de lo que había pasado durante el día.",
    "pt": "Quando o velho voltou para casa, não havia ninguém no jardim. Ele olhou para a porta e "
    "pensou que ela tinha ido embora sem uma palavra. Era a primeira vez em muitos anos que eles "
    "não se sentavam à mesa para falar do que tinha acontecido durante o dia.",
    "it": "Quando il vecchio tornò a casa, non c'era nessuno nel giardino. Guardò la porta e pensò "
    "che lei era andata via senza una parola. Era la prima volta dopo molti anni che non si "
    "sedevano a tavola per parlare di quello che era successo durante il giorno.",
    "nl": "Toen de oude man weer bij het huis kwam, was er niemand in de tuin. Hij keek naar de "
    "deur en dacht dat zij zonder een woord was weggegaan. Het was de eerste keer na vele jaren "
    "dat ze niet aan de tafel zouden zitten om te praten.",
    "pl": "Kiedy stary człowiek wrócił do domu, w ogrodzie nie było nikogo. Spojrzał na drzwi i "
    "pomyślał, że ona odeszła bez słowa. To był pierwszy raz od wielu lat, kiedy nie usiedli przy "
    "stole, żeby porozmawiać o tym, co się stało. Już nigdy nie było tak jak przed laty.",
    "cs": "Když se starý muž vrátil domů, v zahradě nebyl nikdo. Podíval se na dveře a myslel si, "
    "že odešla beze slova. Bylo to poprvé za mnoho let, kdy si nesedli ke stolu, aby si povídali o "
    "tom, co se stalo. Už nikdy to nebylo tak jako před lety, ale on na to nechtěl myslet.",
    "hu": "Amikor az öreg ember hazaért, nem volt senki a kertben. Az ajtóra nézett, és azt "
    "gondolta, hogy a nő egy szó nélkül elment. Sok év után ez volt az első nap, hogy nem ültek le "
    "az asztalhoz, és nem beszéltek arról, ami történt. Már soha nem lesz úgy, mint akkor.",
    "tr": "Yaşlı adam eve geldiği zaman bahçede hiç kimse yoktu. Kapıya baktı ve onun bir şey "
    "demeden gittiğini düşündü. Bu kadar yıl sonra ilk kez masaya oturup o gün ne olduğu için "
    "konuşmadılar. Ama o bunu çok iyi biliyordu ve daha sonra da böyle olacak diye düşündü.",
}


@pytest.mark.parametrize("code", STORIES)
def test_prose_is_known_by_its_frequent_words(code):
    guess = guess_language([STORIES[code]])
    assert guess.code == code and guess.confidence > 0.5
    assert guess_language([STORIES[code].upper()]).code == code


@pytest.mark.parametrize("code", ["fa", "ru", "zh-cn", "ko", "ja", "hi"])
def test_a_script_decides_from_a_few_words(code):
    assert guess_language([greeting(code)] * 3).code == code


def test_arabic_is_known_by_its_own_letters_or_words():
    assert guess_language(["أهلا وسهلا بكم في المدرسة"]).code == "ar"
    assert guess_language(["قال هو من هذا الذي كان في هناك مع كل"] * 5).code == "ar"


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["", "..."],
        ["The end."],
        ["Anna Müller", "John Smith", "Paul Weber"] * 30,
        ["хліб і сіль є їжа"] * 10,
        ["hello سلام"] * 20,
    ],
)
def test_too_little_or_mixed_text_gives_no_guess(texts):
    assert guess_language(texts) is None


def test_persian_typed_with_arabic_letters_is_persian():
    text = "اين كتاب را از او گرفتم و به خانه بردم كه بخوانم"
    assert guess_language([text] * 5).code == "fa"


def test_every_known_language_can_be_guessed():
    assert {*STORIES, "fa", "ru", "ar", "zh-cn", "ko", "ja", "hi"} == set(LANGUAGES)
