"""The fixed symbols that tokens are made of: specials, punctuation, digits, bytes and IPA."""

import unicodedata

# PAD is 0 always: a batch is padded with zeros. BLANK is kept free for models that put a blank
# between tokens, UNK for tables that are extended later; the tokenizer itself writes neither.
PAD, BOS, EOS, BLANK, UNK = SPECIALS = ("<pad>", "<bos>", "<eos>", "<blank>", "<unk>")
PAD_ID, BOS_ID, EOS_ID, BLANK_ID, UNK_ID = range(len(SPECIALS))

# The cleaners map the quotes, dashes, commas and stops of every script to these.
PUNCTUATION = " !\"'(),-.:;?¡¿—…"
DIGITS = "0123456789"
BYTES = tuple(f"<0x{value:02x}>" for value in range(256))

# What piper's front end leaves of punctuation: the marks at which espeak pauses.
PIPER_MARKS = " !,.:;?"

STRESS_MARKS = "ˈˌ"
LENGTH_MARK = "ː"
TIE = "\u0361"


def character_table(letters: str, has_bytes: bool) -> tuple[str, ...]:
    """List specials, punctuation, digits, each letter once and, for open scripts, the bytes."""
    table = (*SPECIALS, *PUNCTUATION, *DIGITS, *sorted(set(letters)))
    return (*table, *BYTES) if has_bytes else table


def phoneme_table() -> tuple[str, ...]:
    """List specials, punctuation, digits (which mark tones) and the phonemes of all voices."""
    return (*SPECIALS, *PUNCTUATION, *DIGITS, *phoneme_symbols())


def piper_table() -> tuple[str, ...]:
    """List specials, the marks that pause, and every code point of espeak's IPA without ties.

    Each symbol is one code point, since that is what piper and its relatives look up.
    """
    parts = unicodedata.normalize("NFD", "".join(phoneme_symbols())).replace(TIE, "")
    points = sorted({*parts, *DIGITS, *_MORE_POINTS} - {*PIPER_MARKS})
    return (*SPECIALS, *PIPER_MARKS, *points)


def phoneme_symbols() -> tuple[str, ...]:
    """List every phoneme token, in a fixed order that no corpus or voice can change."""
    monophthongs = [vowel + length for vowel in _VOWELS for length in ("", LENGTH_MARK)]
    diphthongs = [TIE.join(parts.split("+")) for parts in _DIPHTHONGS]
    nuclei = monophthongs + diphthongs + _SYLLABICS
    stressed = [stress + nucleus for stress in ("", *STRESS_MARKS) for nucleus in nuclei]
    affricates = [TIE.join(pair) for pair in _AFFRICATES]
    modified = [base + mark for mark, bases in _MODIFIED.items() for base in bases]
    modified += [affricate + mark for affricate in affricates for mark in "ʰʲ"]
    # The marks on their own let an unforeseen phoneme be written as its parts.
    loose = [*STRESS_MARKS, LENGTH_MARK, *_LOOSE_MARKS]
    return tuple(dict.fromkeys([*stressed, *_CONSONANTS, *affricates, *modified, *loose]))


_VOWELS = [*"aeiouyæøœɐɑɒɔəɚɛɜɝɤɨɪɯɵʉʊʌʏᵻãẽĩõũä"]
_VOWELS += ["ɐ̃", "ɑ̃", "ɔ̃", "ə̃", "ɛ̃", "ɪ̃", "ʊ̃", "œ̃", "e̞", "o̞", "i̪", "ɯᵝ"]
_DIPHTHONGS = "a+ɪ a+ʊ e+ɪ e+ʊ o+ɪ o+ʊ ə+ʊ ɔ+ɪ ɔ+ø ɛ+ɪ ɛ+ʊ ʌ+ʊ œ+y y+ʊ i+ʊ u+ɪ ɐ̃+ʊ̃".split()
_DIPHTHONGS += "i+ə e+ə ʊ+ə ʊ+ɐ a+i e+i o+u ɑ+u i+ɑ i+ɛ i+o i+o+u u+a u+a+i u+e+i u+o".split()
_DIPHTHONGS += "u+ə y+i y+æ y+ə y+ɛ".split()
_SYLLABICS = ["l̩", "m̩", "n̩", "r̩"]
_CONSONANTS = [*"bcdfhjklmnpqrstvwxzçðħŋɓɕɖɗɟɡɢɣɥɦɫɬɭɱɰɲɳɴɸɹɻɽɾʀʁʂʃʈʋʎʐʑʒʔʕʝʟʍθβχ"]
_AFFRICATES = ["tʃ", "dʒ", "ts", "dz", "tɕ", "dʑ", "tʂ", "dʐ", "pf"]
_MODIFIED = {
    "ʲ": "bcdfhjklmnprstvwxzɕɡɣɭɲɽʃʑʒ",
    "ʰ": "bcdkpqtɖɟɡɽʈ",
    "ˤ": "dstðz",
    "\u0348": "kpqst",  # Korean tense consonants
    "\u032a": "dstnl",  # dental
    "\u031d": "r",  # Czech ř
    "\u031d\u030a": "r",  # and its voiceless twin
}
_LOOSE_MARKS = "ʲʰˤᵝ\u0303\u0325\u0329\u032a\u0348\u031d\u030a\u031e\u0308"
# Code points of other voices of espeak, which piper's table has too.
_MORE_POINTS = "\"#'()-gXçε˞ˑʷʦⱱǀǁǂǃɘɞɠɧɮɶɺʄʘʙʛʜʡʢ↓↑\u032f\u033a\u033b"
