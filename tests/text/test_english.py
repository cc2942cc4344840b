"""English as it is written against English as it is spoken."""

import pytest

from myxtts.text.cleaners import normalise

WORDS = {
    "The DISCO.": "the disco.",
    "Smith & Co. sells discs": "smith and company sells discs",
    "Dr. Smith met Mrs. Jones and Mr Brown": "doctor smith met missus jones and mister brown",
    "Capt. Ahab, Jr., Esq.": "captain ahab, junior, esquire.",
    "St. James walked on Main St. today": "saint james walked on main street today",
    "No. 5 is alive": "number five is alive",
    "She said no. He left.": "she said no. he left.",
    "cats, dogs, etc., e.g. these": "cats, dogs, et cetera, for example these",
    "the U.S. Army vs. the others": "the u-s army versus the others",
    "J. F. Kennedy": "j f kennedy",
    "a Ph.D. student": "a p-h-d student",
    "Henry VIII fought World War II": "henry the eighth fought world war two",
    "Chapter IV. The end": "chapter four. the end",
    "I saw Vol. 3, pp. 5-7": "i saw volume three, pages five to seven",
    "mail me@example.com": "mail me at example dot com",
    "“Quoted”  text — ‘here’...": "\"quoted\" text — 'here'…",
    "wait -- what?!": "wait — what?!",
    "Hey!!! You , there": "hey! you, there",
    "a\tb\u00a0c\r\nd\u200b": "a b c d",
    "cafe\u0301 nai\u0308ve": "café naïve",
    "ﬁne ＡＢＣ": "fine abc",
    "well-known": "well-known",
    "[see] {this}": "(see) (this)",
    "a*b_c": "a b c",
    "\ud800\x00hi": "hi",
}

NUMBERS = {
    "Dr. Smith paid $5.50 on 3rd May 1999": (
        "doctor smith paid five dollars and fifty cents on third may nineteen ninety-nine"
    ),
    "$5": "five dollars",
    "$1.": "one dollar.",
    "£1,234.56": "one thousand two hundred thirty-four pounds and fifty-six pence",
    "$0.01 or $.50": "one cent or fifty cents",
    "-$3": "minus three dollars",
    "$2.5 million": "two point five million dollars",
    "€3bn": "three billion euros",
    "50¢ and 20 €": "fifty cents and twenty euros",
    "about 5% of 12.5 %": "about five percent of twelve point five percent",
    "May 3, 1999, was": "may third, nineteen ninety-nine, was",
    "on 21 March 1905": "on twenty-first march nineteen oh five",
    "the 2nd of June 2010": "the second of june twenty ten",
    "1999-05-03": "may third, nineteen ninety-nine",
    "12/25/2000": "december twenty-fifth, two thousand",
    "25/12/2000": "december twenty-fifth, two thousand",
    "Feb. 3rd": "february third",
    "the 1960s and '80s": "the nineteen sixties and eighties",
    "1914–1918": "nineteen fourteen to nineteen eighteen",
    "at 5:05 p.m. sharp": "at five oh five p-m sharp",
    "at 10:00": "at ten o'clock",
    "at 11 a.m.": "at eleven a-m.",
    "the 1st, 22nd and 113th": "the first, twenty-second and one hundred thirteenth",
    "1,000,001": "one million one",
    "3.14 and .5": "three point one four and point five",
    "-7 degrees, 20°C": "minus seven degrees, twenty degrees celsius",
    "2½ cups, 3/4 done": "two and a half cups, three quarters done",
    "1 kg, 5 kg, 6 ft. tall": "one kilogram, five kilograms, six feet tall",
    "a 15-minute mp3": "a fifteen-minute mp three",
    "agent 007": "agent zero zero seven",
    "call 555-1234": "call five five five, one two three four",
    "serial C2766": "serial c two seven six six",
    "version 1.2.3": "version one point two point three",
    "1,929.3.4": "one thousand nine hundred twenty-nine point three point four",
    "#1 = 1+0": "number one equals one plus zero",
    "24/7": "twenty-four seven",
    "١٢ and ۱۳": "twelve and thirteen",
}


@pytest.mark.parametrize("written", WORDS)
def test_words_and_abbreviations(written):
    assert normalise(written, "en") == WORDS[written]


@pytest.mark.parametrize("written", NUMBERS)
def test_numbers_money_dates_and_times(written):
    assert normalise(written, "en") == NUMBERS[written]


def test_normalising_twice_changes_nothing():
    for spoken in [*WORDS.values(), *NUMBERS.values()]:
        assert normalise(spoken, "en") == spoken


def test_an_endless_amount_is_spelled_out():
    assert normalise("$1" + ",000" * 2000, "en").startswith("one zero zero zero")
