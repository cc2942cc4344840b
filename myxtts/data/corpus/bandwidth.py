"""Whether the recordings of a corpus hold every frequency that the mels are to show."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from myxtts.audio.bounds import AudioInfo
from myxtts.config.audio_spec import AudioSpec
from myxtts.config.presets import AUDIO_PRESETS, create_default_config
from myxtts.data.corpus.corpus import Corpus
from myxtts.data.corpus.headers import read_headers

logger = logging.getLogger(__name__)

_LOOKED_AT = 200  # recordings that stand for all


def check_bandwidth(corpora: Sequence[Corpus], spec: AudioSpec) -> None:
    """Look at some headers of all corpora, and warn once of recordings that are too narrow."""
    paths = [one.audio for corpus in corpora for one in corpus.utterances]
    headers = read_headers(_spread(paths, _LOOKED_AT))
    rates = Counter(one.sample_rate for one in headers if isinstance(one, AudioInfo))
    warn_narrow(rates, spec, "" if len(paths) <= _LOOKED_AT else " that were looked at")


def warn_narrow(rates: Mapping[int, int], spec: AudioSpec, which: str = "") -> None:
    """Warn of recordings, counted by their sample rates, that end below the highest mel band."""
    narrow = {rate: count for rate, count in sorted(rates.items()) if rate < 2 * spec.fmax}
    if not narrow:
        return
    logger.warning(
        "%s of %s recordings%s have too few samples a second (%s): above half of that they hold "
        "nothing, and the mels go up to %s Hz. Upsampling adds nothing: use recordings of at least "
        "%s Hz, or %s",
        f"{sum(narrow.values()):,}",
        f"{sum(rates.values()):,}",
        which,
        ", ".join(f"{rate:,} Hz: {count:,}" for rate, count in narrow.items()),
        f"{spec.fmax:,.0f}",
        f"{2 * spec.fmax:,.0f}",
        _remedy(min(narrow)),
    )


def _remedy(rate: int) -> str:
    """The settings whose mels recordings of a rate fill."""
    for name in AUDIO_PRESETS:
        if 2 * create_default_config(audio=name).data.fmax <= rate:
            return f"--audio {name}"
    return f"lower data.fmax to {rate / 2:,.0f}"


def _spread(paths: Sequence[Path], most: int) -> Sequence[Path]:
    """At most so many, evenly spread."""
    return paths[:: -(-len(paths) // most)] if len(paths) > most else paths
