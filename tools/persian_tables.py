"""Make the tables of the Persian front end from annotated texts.

Usage: python tools/persian_tables.py --farsdat FarsDat.csv --treebank fa_perdt-ud-*.conllu
       [--gruut gruut_lang_fa | --own-classes] [--homorich HomoRich.csv] [--output tables]

--gruut takes word classes from the tagger in that package, --own-classes from the treebank.
Without either those of the package are used as they are. The same files give the same
tables, byte by byte.
"""

import argparse
import os
import sys
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from myxtts.text.languages.persian.table_files import TABLES  # noqa: E402
from myxtts.text.languages.persian.word_classes import WordClass, pack  # noqa: E402
from tools.persian import homographs, pronunciations, training  # noqa: E402
from tools.persian.annotated import Sentence, read_farsdat  # noqa: E402
from tools.persian.arrays import write_arrays  # noqa: E402
from tools.persian.treebank import read_treebank  # noqa: E402

_TREEBANK_COUNT = 0.5  # its ezafes follow from a rule, those of FarsDat were written by people
_HELD_OUT = 10  # one sentence block in so many is for judging


def main() -> None:
    args = _parse()
    args.output.mkdir(parents=True, exist_ok=True)
    os.environ["MYXTTS_PERSIAN_TABLES"] = str(args.output)  # the tagger learns with its own classes
    if args.farsdat:
        farsdat = list(read_farsdat(args.farsdat))
        trees = [sentence for path in args.treebank for sentence in read_treebank(path)]
        if args.gruut:
            trees = _teach(args.gruut, trees, args.output)
        elif args.own_classes:
            from tools.persian.treebank_classes import treebank_classes

            classes = treebank_classes(args.treebank, [*trees, *farsdat])
            _write_classes(classes, args.output / "word_classes.npz")
        _make_tagger(farsdat, trees, args.output)
        pronunciations.write(farsdat, args.output / "words.tsv")
    if args.homorich:
        homographs.write(args.homorich, args.output / "homorich.tsv")


def _teach(package: Path, trees: list[Sentence], output: Path) -> list[Sentence]:
    """Write the classes of words, and keep what the tagger and the trees agree on."""
    from tools.persian.teacher import keep_agreed, word_classes
    from tools.persian.wapiti import WapitiTagger

    tagger = WapitiTagger(package / "pos" / "postagger.model")
    _write_classes(word_classes(tagger), output / "word_classes.npz")
    return keep_agreed(trees, tagger)


def _write_classes(classes: dict[str, WordClass], path: Path) -> None:
    packed = {zlib.crc32(word.encode()): pack(found) for word, found in classes.items()}
    keys = np.array(sorted(packed), np.uint64)
    steps = np.diff(keys, prepend=np.uint64(0)).astype(np.uint32)
    write_arrays(path, key_steps=steps, codes=np.array([packed[int(k)] for k in keys], np.uint16))


def _make_tagger(farsdat: list[Sentence], trees: list[Sentence], output: Path) -> None:
    """Judge a tagger on held-out blocks, then train it on everything and write it."""
    kept, held = _split(farsdat)
    tree_examples = training.examples_of(trees, _TREEBANK_COUNT)
    model = training.train(training.join([training.examples_of(kept), tree_examples]))
    judged = training.examples_of(held)
    scores = training.scores_of(model, judged.features)
    figures = training.precision_recall(scores, judged.labels)
    print("held-out FarsDat: precision {:.3f}, recall {:.3f}, F1 {:.3f}".format(*figures))
    model = training.train(training.join([training.examples_of(farsdat), tree_examples]))
    weights, scale = training.quantise(model)
    write_arrays(output / "ezafe.npz", weights=weights, scale=scale, bias=model.bias)


def _split(sentences: list[Sentence], block: int = 30) -> tuple[list[Sentence], list[Sentence]]:
    """Hold out whole blocks: neighbouring sentences are of the same text."""
    held = [s for place, s in enumerate(sentences) if place // block % _HELD_OUT == 0]
    kept = [s for place, s in enumerate(sentences) if place // block % _HELD_OUT]
    return kept, held


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--farsdat", type=Path, metavar="CSV", help="FarsDat.csv of GE2PE")
    parser.add_argument("--treebank", type=Path, nargs="*", default=[], metavar="CONLLU")
    parser.add_argument("--gruut", type=Path, metavar="DIR", help="the folder gruut_lang_fa")
    parser.add_argument("--own-classes", action="store_true", help="classes from the treebank")
    parser.add_argument("--homorich", type=Path, metavar="CSV", help="HomoRich as a CSV file")
    parser.add_argument("--output", type=Path, default=TABLES, metavar="DIR")
    return parser.parse_args()


if __name__ == "__main__":
    main()
