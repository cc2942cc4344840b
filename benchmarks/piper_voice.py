"""Writes a voice of the size that piper's own medium ones have, to measure what these cost.

PIPER_PYTHON benchmarks/piper_voice.py en_US-stock-medium.onnx

PIPER_PYTHON is an interpreter that has piper-tts, torch and onnx. The network is the one of piper's
training code, in the sizes that it has by default (63 MB); its weights are random, so it speaks
noise, at the price of a voice. No package has one of the published voices.
"""

import json
import sys
from pathlib import Path

import torch
from piper.phoneme_ids import DEFAULT_PHONEME_ID_MAP
from piper.train.vits.models import SynthesizerTrn

SIZES = {
    "n_vocab": 256,
    "spec_channels": 513,
    "segment_size": 32,
    "inter_channels": 192,
    "hidden_channels": 192,
    "filter_channels": 768,
    "n_heads": 2,
    "n_layers": 6,
    "kernel_size": 3,
    "p_dropout": 0.1,
    "resblock": "2",
    "resblock_kernel_sizes": (3, 5, 7),
    "resblock_dilation_sizes": ((1, 2), (2, 6), (3, 12)),
    "upsample_rates": (8, 8, 4),
    "upsample_initial_channel": 256,
    "upsample_kernel_sizes": (16, 16, 8),
    "use_sdp": True,
}
SCALES = {"noise_scale": 0.667, "length_scale": 1.0, "noise_w": 0.8}


def main() -> None:
    path = Path(sys.argv[1])
    torch.manual_seed(1234)
    network = SynthesizerTrn(**SIZES).eval()
    with torch.no_grad():
        network.dec.remove_weight_norm()

    def infer(text, lengths, scales, sid=None):
        noise, length, noise_w = scales
        how = {"noise_scale": noise, "length_scale": length, "noise_scale_w": noise_w}
        return network.infer(text, lengths, sid=sid, **how)[0].unsqueeze(1)

    network.forward = infer
    text, scales = torch.randint(0, 256, (1, 50)), torch.tensor(list(SCALES.values()))
    torch.onnx.export(
        network,
        (text, torch.tensor([50]), scales, None),
        path,
        opset_version=15,
        input_names=["input", "input_lengths", "scales", "sid"],
        output_names=["output"],
        dynamic_axes={"input": {1: "phonemes"}, "output": {2: "time"}},
        dynamo=False,
    )
    config = {
        "audio": {"sample_rate": 22050, "quality": "medium"},
        "espeak": {"voice": "en-us"},
        "phoneme_type": "espeak",
        "num_symbols": 256,
        "num_speakers": 1,
        "inference": SCALES,
        "phoneme_id_map": DEFAULT_PHONEME_ID_MAP,
        "speaker_id_map": {},
        "piper_version": "1.8.0",
    }
    Path(f"{path}.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main()
