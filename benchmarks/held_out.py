"""How well a run is understood on the sentences of its corpus that it held out.

    myxtts train --data CORPUS --checkpoint-dir RUN ...
    python benchmarks/held_out.py RUN [--sentences 40] [--curve curve.png]

Says the validation sentences with the run's voice, lets a recogniser hear them beside the
recordings themselves and their copies through Griffin-Lim, and draws the run's curve.
"""

import argparse
import sys
from pathlib import Path

from myxtts.bench import timing
from myxtts.cli.terminal import import_tensorflow


def main() -> None:
    asked = _parse()
    import_tensorflow()
    from myxtts.evaluation.asr import asr_for
    from myxtts.evaluation.history import read_history
    from myxtts.evaluation.report.plots import write_curve
    from myxtts.evaluation.report.report import score_rows
    from myxtts.evaluation.trial import score_copies, score_trial

    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    history = read_history(asked.run / "history.jsonl")
    print(f"{history.steps:,} steps; {100 * history.waiting:.2f} % of them waited for data")
    if asked.curve:
        write_curve(asked.curve, history)
    trial, lengths = hold(asked.run, asked.sentences)
    print(
        f"{len(trial.sentences)} sentences in {trial.language!r}; length ratio "
        f"{lengths.ratio:.3f}, from {lengths.lowest:.2f} to {lengths.highest:.2f}"
    )
    recogniser = asr_for(trial.language)
    if recogniser is None:
        print(f"there is no recogniser of {trial.language!r} at hand: not understood, not scored")
        return
    scores = [*score_trial(trial, recogniser), score_copies(trial, recogniser)]
    header, *rows = score_rows(scores)
    print(timing.table(header, rows))


def hold(run: Path, count: int):
    """Say the held-out sentences, and return them beside their recordings, with the lengths."""
    from myxtts.audio.io import read_audio
    from myxtts.checkpoints import load_voice
    from myxtts.config.io import load_config
    from myxtts.data.features.corpora import read_corpora
    from myxtts.evaluation.metrics.robustness import compare_lengths
    from myxtts.evaluation.trial import Trial
    from myxtts.inference.synthesizer import Synthesizer

    corpus, separate = read_corpora(load_config(run / "config.yaml").data)
    chosen = (separate.utterances if separate else corpus.val)[:count]
    synthesizer = Synthesizer(load_voice(run))
    spec, language = synthesizer.spec, chosen[0].language
    speech = synthesizer.speak_many([one.text for one in chosen], language=language)
    recorded = [read_audio(one.audio, spec.sample_rate) for one in chosen]
    spoken = [one.samples for one in speech]
    trial = Trial(
        "held out",
        language,
        [one.text for one in chosen],
        spoken,
        [one.mel for one in speech],
        recorded,
        spec,
    )
    return trial, compare_lengths([len(x) for x in spoken], [len(x) for x in recorded])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="the folder of a run (--checkpoint-dir)")
    parser.add_argument("--sentences", type=int, default=40)
    parser.add_argument("--curve", type=Path, help="draw the run's curve here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
