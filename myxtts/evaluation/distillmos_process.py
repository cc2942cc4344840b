"""The program that runs Distill-MOS in another interpreter, which has torch and not this package.

It takes a file of recordings (npz, float32 [samples] each) and prints their scores as JSON.
"""

import contextlib
import json
import sys

SAMPLE_RATE = 16000


def main(path: str) -> None:
    import distillmos
    import numpy as np
    import torch

    with contextlib.redirect_stdout(sys.stderr):  # it prints where its weights are
        network = distillmos.ConvTransformerSQAModel().eval()
    with np.load(path) as recordings, torch.no_grad():
        scores = {
            name: float(network(torch.from_numpy(recordings[name])[None])[0].item())
            for name in recordings.files
        }
    print(json.dumps(scores))


if __name__ == "__main__":
    main(sys.argv[1])
