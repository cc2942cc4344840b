"""The voices of the built-in corpus, and those held out for tests of cloning."""

from dataclasses import dataclass

ESPEAK_LANGUAGE = {"en": "en-us", "fa": "fa"}
DEFAULT_PITCH = 50


@dataclass(frozen=True, slots=True)
class DemoVoice:
    """A variant of espeak-ng and how it speaks: words a minute, and a pitch from 0 to 99."""

    variant: str
    rate: int
    pitch: int = DEFAULT_PITCH

    @property
    def name(self) -> str:
        """The speaker's name."""
        return self.variant if self.pitch == DEFAULT_PITCH else f"{self.variant}-p{self.pitch}"


def _at(words_a_minute: int, voices: str) -> tuple[DemoVoice, ...]:
    """Read voices written as variant:rate:pitch, all spoken faster by some words a minute."""
    split = (voice.split(":") for voice in voices.split())
    return tuple(DemoVoice(name, int(rate) + words_a_minute, int(p)) for name, rate, p in split)


# Every corpus depends on the order: only append. After the first eight, high and low voices
# alternate, each as far in pitch and timbre from the ones before it as possible, so that the first
# few differ most. The pitch of espeak-ng shifts the formants too. The rates make up for variants
# that are fast or slow by themselves.
_FURTHER = """
    zac:150:30    m2:155:72     f1:145:50     david:140:68    aunty:145:50    ian:145:55
    f5:155:68     m5:145:50     anika:115:50  m2:140:35       ed:145:75       pedro:125:72
    f2:145:50     Gene:145:50   Reed:145:75   gustave:155:70  belinda:140:50  max:140:36
    aunty:150:70  m1:150:72     zac:145:15    Gene:155:74     miguel:150:78   ian:150:75
    f3:140:68     m6:150:34     f5:145:50     pedro:115:50    f1:155:70       m5:155:72
    anika:125:30  Denis:150:70  f3:155:30     max:150:75      steph:140:30    quincy:155:76
    Annie:155:66  m8:140:78     f5:150:30     michel:145:36
"""

# No corpus has these variants, or espeak-ng's near copies of them, at any pitch.
_UNSEEN = """
    travis:150:50  Andrea:115:60  Storm:145:55   f4:150:50       iven4:150:50
    shelby:150:50  sandro:150:60  Nguyen:150:65  grandma:150:66  pablo:150:72
"""

# The first voice of a language is the main one. For English, an ASR understands these voices at
# these rates; benchmarks/demo_voices.py measures it.
_FIRST = ("rob", "f3", "m3", "Annie", "victor", "steph", "Hugo", "m8")
_FIRST_RATES = (150, 150, 145, 150, 155, 145, 145, 145)
VOICES = {
    "en": (*map(DemoVoice, _FIRST, _FIRST_RATES), *_at(0, _FURTHER)),
    "fa": (*(DemoVoice(variant, 175) for variant in _FIRST), *_at(25, _FURTHER)),
}
UNSEEN = {"en": _at(0, _UNSEEN), "fa": _at(25, _UNSEEN)}
