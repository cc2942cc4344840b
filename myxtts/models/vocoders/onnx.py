"""An exported vocoder, run by onnxruntime."""

from typing import Any

import numpy as np

from myxtts.models.onnx.graph import Graph
from myxtts.models.vocoders.base import Vocoder, Window

MEL, WAVEFORM = "mel", "waveform"
CLOCKED, CLOCK = ("anchor", "phase", "first_frame"), "clock"


class OnnxVocoder(Vocoder):
    """A graph from mels to waveforms; one with a clock carries its phase from window to window."""

    def __init__(self, graph: Graph, kind: str, hop: int, n_mels: int, context_frames: int):
        self.kind, self.hop, self.n_mels = kind, hop, n_mels  # type: ignore[misc]
        self.context_frames = context_frames
        self._has_clock = CLOCK in graph.outputs
        clocked = set(CLOCKED) if self._has_clock else set()
        self._graph = graph.check({MEL} | clocked, {WAVEFORM})

    def generate(
        self, mel: np.ndarray, state: Any = None, seed: int = 0, window: Window | None = None
    ) -> tuple[np.ndarray, Any]:
        window = window or Window(0, len(mel))
        start, stop = window.start, window.stop
        phase = np.zeros(1, np.float32) if state is None else state
        out = self._graph.run(
            mel=mel[None], anchor=start, phase=phase, first_frame=window.place(seed)
        )
        samples = out[WAVEFORM][0, start * self.hop : stop * self.hop]
        if self._has_clock and stop < len(mel):
            phase = out[CLOCK][:, stop]
        return samples, phase
