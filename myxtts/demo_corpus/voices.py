"""The voices of the built-in corpus: those it is spoken in, and those kept for tests of cloning."""

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


# The order is part of every corpus made so far: append, and change nothing. After the first eight,
# a high voice and a low one take turns, each as far in pitch and timbre from those before it as the
# rest allowed, so that the first few of them are as unlike as can be. The pitch of espeak-ng moves
# the formants too. A variant that is fast or slow by itself has a rate that makes up for it.
_FURTHER = """
    zac:150:30    m2:155:72     f1:145:50     david:140:68    aunty:145:50    ian:145:55
    f5:155:68     m5:145:50     anika:115:50  m2:140:35       ed:145:75       pedro:125:72
    f2:145:50     Gene:145:50   Reed:145:75   gustave:155:70  belinda:140:50  max:140:36
    aunty:150:70  m1:150:72     zac:145:15    Gene:155:74     miguel:150:78   ian:150:75
    f3:140:68     m6:150:34     f5:145:50     pedro:115:50    f1:155:70       m5:155:72
    anika:125:30  Denis:150:70  f3:155:30     max:150:75      steph:140:30    quincy:155:76
    Annie:155:66  m8:140:78     f5:150:30     michel:145:36
"""

# Their variants, and the near twins of these in espeak-ng, are in no corpus at any pitch.
_UNSEEN = """
    travis:150:50  Andrea:115:60  Storm:145:55   f4:150:50       iven4:150:50
    shelby:150:50  sandro:150:60  Nguyen:150:65  grandma:150:66  pablo:150:72
"""

# The first voice of a language is the main one. For English they are voices and rates at which a
# recogniser understands espeak-ng; benchmarks/demo_voices.py measures them.
VOICES = {
    "en": (
        DemoVoice("rob", 150),
        DemoVoice("f3", 150),
        DemoVoice("m3", 145),
        DemoVoice("Annie", 150),
        DemoVoice("victor", 155),
        DemoVoice("steph", 145),
        DemoVoice("Hugo", 145),
        DemoVoice("m8", 145),
        *_at(0, _FURTHER),
    ),
    "fa": (
        *(
            DemoVoice(variant, 175)
            for variant in ("rob", "f3", "m3", "Annie", "victor", "steph", "Hugo", "m8")
        ),
        *_at(25, _FURTHER),
    ),
}
UNSEEN = {"en": _at(0, _UNSEEN), "fa": _at(25, _UNSEEN)}
