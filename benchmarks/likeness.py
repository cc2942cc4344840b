"""How much of a speaker's likeness a vocoder keeps: the ceiling of a clone that speaks through it.

    python benchmarks/likeness.py CORPUS [--clips 8] [--weights FOLDER]

For each speaker of a corpus: the mean cosine of ECAPA embeddings between recordings and so many
others, and the same of their resynthesis by Griffin-Lim and by the vocoder of the package's voice,
which has heard one other speaker.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from myxtts.bench import timing
from myxtts.cli.terminal import import_tensorflow
from myxtts.weights import PUBLIC, default_folder


def main() -> None:
    asked = _parse()
    import_tensorflow()
    from myxtts.audio.mel import log_mel
    from myxtts.checkpoints import load_speaker_encoder, load_voice
    from myxtts.config.config import DataConfig
    from myxtts.data.features.corpora import read_corpora
    from myxtts.inference.vocoders import AUTO, GRIFFIN_LIM, exported_vocoder
    from myxtts.resources import default_voice
    from myxtts.workflows.speaking import read_all

    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    voice = load_voice(default_voice())
    spec = voice.config.data.audio_spec
    vocoders = {name: exported_vocoder(name, voice) for name in (GRIFFIN_LIM, AUTO)}
    judge = "ecapa_tdnn"
    encoder = load_speaker_encoder(judge, asked.weights / PUBLIC[judge].filename)

    def embed(clips) -> np.ndarray:
        found = np.stack(encoder.embed_many(clips, spec.sample_rate))
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    corpus, _ = read_corpora(DataConfig(dataset_path=str(asked.corpus)))
    names = [vocoder.name for vocoder in vocoders.values()]
    print(f"| speaker | recordings | {' | '.join(names)} |")
    print("|---" * (2 + len(names)) + "|")
    for speaker in dict.fromkeys(one.speaker for one in corpus.utterances):
        own = [one.audio for one in corpus.utterances if one.speaker == speaker]
        if len(own) < 2 * asked.clips:
            continue
        clips = read_all(own[: 2 * asked.clips], spec.sample_rate)
        said, known = clips[: asked.clips], embed(clips[asked.clips :])
        natural = float((embed(said) @ known.T).mean())
        row = [f"{natural:.3f}"]
        for vocoder in vocoders.values():
            again = [vocoder(log_mel(one, spec), spec, 0) for one in said]
            likeness = float((embed(again) @ known.T).mean())
            row.append(f"{likeness:.3f}, {100 * likeness / natural:.0f} %")
        print(f"| {speaker} | {' | '.join(row)} |", flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--clips", type=int, default=8)
    parser.add_argument("--weights", type=Path, default=default_folder())
    return parser.parse_args()


if __name__ == "__main__":
    main()
