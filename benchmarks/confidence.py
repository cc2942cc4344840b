"""How well the confidence of transcripts finds those with errors.

    python benchmarks/confidence.py CORPUS [--clips 160] [--seed 0]

Clips of an English corpus whose texts are known, every second one under white noise of 0 to 20 dB
below the speech, are transcribed by moonshine, and once more a tenth faster. A score finds errors
well if a wrong transcript nearly always has a lower one than a right one: that share is the AUC.
"""

import argparse

import numpy as np

from myxtts.audio.io import read_audio
from myxtts.data.corpus.corpus import read_corpus
from myxtts.evaluation.asr import Moonshine
from myxtts.evaluation.metrics.intelligibility import error_rates
from myxtts.workflows.transcribe import _SURE, _confidences

RATE = 16000
WRONG = 0.1  # of the letters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", help="English, in the layout of LJSpeech")
    parser.add_argument("--clips", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    utterances = read_corpus(args.corpus, val_fraction=0.0).train
    chosen = [utterances[at] for at in rng.choice(len(utterances), args.clips, replace=False)]
    waves = [hear(str(one.audio), rng if at % 2 else None) for at, one in enumerate(chosen)]
    asr = Moonshine()
    texts = asr.transcribe_many([(one, RATE) for one in waves])
    sure = np.array([one or 0.0 for one in _confidences(asr, waves, texts)])
    errors = [
        error_rates([one.text], [text], "en").cer for one, text in zip(chosen, texts, strict=True)
    ]
    is_wrong = np.array(errors) > WRONG
    rates = np.array([len(text) / len(wave) for text, wave in zip(texts, waves, strict=True)])
    usual = -np.abs(np.log(np.maximum(rates, 1e-9) / np.median(rates)))
    flagged = sure < _SURE
    print(f"{is_wrong.sum()} of {len(texts)} transcripts have over {WRONG:.0%} wrong letters")
    print(
        f"AUC of the confidence {auc(sure, is_wrong):.2f}, of the rate {auc(usual, is_wrong):.2f}"
    )
    print(
        f"{flagged.sum()} have a confidence below {_SURE:.0%}, {(flagged & is_wrong).sum()} of "
        "them wrong"
    )


def hear(path: str, rng: np.random.Generator | None) -> np.ndarray:
    samples = read_audio(path, RATE)
    if rng is None:
        return samples
    noise = rng.standard_normal(len(samples)).astype(np.float32)
    wanted = np.sqrt(np.mean(samples**2)) * 10.0 ** (-rng.uniform(0.0, 20.0) / 20.0)
    return samples + np.float32(wanted) * noise


def auc(score: np.ndarray, is_wrong: np.ndarray) -> float:
    wrong, right = score[is_wrong][:, None], score[~is_wrong]
    return float(((wrong < right) + 0.5 * (wrong == right)).mean())


if __name__ == "__main__":
    main()
