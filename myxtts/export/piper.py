"""A voice for piper, and for everything that plays piper's voices: one graph and its JSON."""

from pathlib import Path
from typing import Any

from myxtts.errors import UserError
from myxtts.export.players import PlayerTable
from myxtts.export.single_file import SingleFile
from myxtts.text.languages import get_language
from myxtts.text.tokenizer import CHARACTERS

SUFFIX = ".onnx"
# The names that piper's listings show. Other languages go by their code alone.
_REGIONS = {
    "en": ("en_US", "English", "United States"),
    "fa": ("fa_IR", "فارسی", "Iran"),
    "de": ("de_DE", "Deutsch", "Germany"),
    "es": ("es_ES", "Español", "Spain"),
    "fr": ("fr_FR", "Français", "France"),
    "it": ("it_IT", "Italiano", "Italy"),
}


def check_name(path: Path) -> None:
    """Raise unless a path can be that of a voice."""
    if path.suffix != SUFFIX:
        raise UserError(
            f"{path} does not end in {SUFFIX}, as piper's voices do: name it like "
            "en_US-name-medium.onnx"
        )


def piper_config(single: SingleFile, table: PlayerTable, path: Path) -> dict[str, Any]:
    """What stands next to the graph as NAME.onnx.json."""
    voice, row = single.voice, get_language(single.language)
    code, native, country = _REGIONS.get(row.code, (row.code, row.name, ""))
    return {
        "audio": {"sample_rate": voice.config.data.sample_rate, "quality": "medium"},
        "espeak": {"voice": row.espeak_voice},
        "phoneme_type": "text" if voice.tokenizer.units == CHARACTERS else "espeak",
        "num_symbols": table.size,
        "num_speakers": len(voice.speakers),
        "inference": {"noise_scale": single.temperature, "length_scale": 1.0, "noise_w": 0.0},
        "phoneme_id_map": {symbol: [index] for symbol, index in table.ids.items()},
        "speaker_id_map": {name: number for number, name in enumerate(voice.speakers)},
        "default_speaker_id": 0,
        "hop_length": voice.config.data.hop_length,
        "dataset": path.name.removesuffix(SUFFIX),
        "language": {
            "code": code,
            "family": row.code,
            "region": code.partition("_")[2],
            "name_native": native,
            "name_english": row.name,
            "country_english": country,
        },
        "piper_version": "1.8.0",
    }
