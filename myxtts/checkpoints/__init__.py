"""What a run leaves on the disk: training states to resume from, and voices to speak with."""

from myxtts.checkpoints.exported import holds_export
from myxtts.checkpoints.files import CheckpointError
from myxtts.checkpoints.speaker_encoders import (
    as_voice_encoder,
    encoder_path,
    load_speaker_encoder,
)
from myxtts.checkpoints.states import (
    Best,
    SavedState,
    abandon_after,
    best_state,
    latest_state,
    load_state,
    mark_best,
    marked_best,
    prune,
    recover,
    save_state,
    saved_states,
    state_path,
    unmark_best,
)
from myxtts.checkpoints.variables import restore, seeds_of, variables_of, weights_of
from myxtts.checkpoints.voices import (
    Voice,
    holds_voice,
    load_trainable,
    load_voice,
    read_languages,
    read_names,
    save_voice,
)

__all__ = [
    "Best",
    "CheckpointError",
    "SavedState",
    "Voice",
    "abandon_after",
    "as_voice_encoder",
    "best_state",
    "encoder_path",
    "holds_export",
    "holds_voice",
    "latest_state",
    "load_speaker_encoder",
    "load_state",
    "load_trainable",
    "load_voice",
    "mark_best",
    "marked_best",
    "prune",
    "read_languages",
    "read_names",
    "recover",
    "restore",
    "save_state",
    "save_voice",
    "saved_states",
    "seeds_of",
    "state_path",
    "unmark_best",
    "variables_of",
    "weights_of",
]
