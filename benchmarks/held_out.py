"""How well a run is understood on the sentences of its corpus that it held out.

    myxtts train --data CORPUS --checkpoint-dir RUN ...
    python benchmarks/held_out.py RUN [--sentences 40] [--curve curve.png]

Evaluates the run's voice as `myxtts evaluate` does, and draws the run's curve.
"""

import argparse
import sys
from pathlib import Path

from myxtts.bench import timing
from myxtts.cli.terminal import import_tensorflow


def main() -> None:
    asked = _parse()
    import_tensorflow()
    from myxtts import evaluate
    from myxtts.config.io import load_config
    from myxtts.evaluation.history import read_history
    from myxtts.evaluation.report.plots import write_curve
    from myxtts.evaluation.report.rows import absences, measure_rows
    from myxtts.evaluation.report.tables import aligned

    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    history = read_history(asked.run / "history.jsonl")
    print(f"{history.steps:,} steps; {100 * history.waiting:.2f} % of them waited for data")
    if asked.curve:
        write_curve(asked.curve, history)
    corpus = load_config(asked.run / "config.yaml").data.dataset_path
    found = evaluate(asked.run, corpus, sentences=asked.sentences, vocoder="griffin_lim")
    print(aligned(measure_rows(found)))
    for line in absences(found):
        print(line)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="the folder of a run (--checkpoint-dir)")
    parser.add_argument("--sentences", type=int, default=40)
    parser.add_argument("--curve", type=Path, help="draw the run's curve here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
