"""English, whose numbers, dates and abbreviations are spelled by rules of their own."""

from myxtts.text.language import LATIN, Language, words
from myxtts.text.languages.english.expansion import expand
from myxtts.text.languages.english.hard_sentences import HARD_SENTENCES

ENGLISH = Language(
    code="en",
    name="English",
    greeting="Hello, how are you?",
    alphabet=LATIN,
    espeak_voice="en-us",
    expand=expand,
    abbreviations=words(
        "mr mrs ms messrs dr prof rev hon gen col maj capt lt sgt cpl gov sen rep pres st mt ft "
        "vs cf approx viz"
    ),
    hard_sentences=HARD_SENTENCES,
    frequent_words=words(
        "the of and to in is that it was for on are as with his they at be this from have or had "
        "by but not what all were we when your can said there each which she do how their if "
        "will up other about out many then them these so some her would make like him into time "
        "has look two more go see no way could people my than first been call who its now find "
        "long down day did get come made may part i you he me us our own over after before where "
        "most through back much only very any also just such here must should because between "
        "never under again against being those while still upon might every without another "
        "always nothing something though until away let mister one three four five six seven "
        "eight nine zero don't didn't it's i'm that's won't can't there's"
    ),
)
