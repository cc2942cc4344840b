"""Where a user looks for batches: the readers of whole utterances and of segments."""

from myxtts.data.batches.graph_reader import (
    Batches,
    ReaderOptions,
    cached_batches,
    cached_dataset,
    reader_options,
)
from myxtts.data.batches.runtime_reader import runtime_batches, runtime_dataset
from myxtts.data.segments.reader import SegmentBatches, segment_batches
from myxtts.data.segments.vocoder_data import VocoderData

__all__ = [
    "Batches",
    "SegmentBatches",
    "ReaderOptions",
    "VocoderData",
    "cached_batches",
    "cached_dataset",
    "segment_batches",
    "reader_options",
    "runtime_batches",
    "runtime_dataset",
]
