"""Several corpora as one: `--data a --data b`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from myxtts.data.corpus.corpus import Corpus
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.rejections import Rejection


def join_corpora(corpora: Sequence[Corpus]) -> Corpus:
    """All utterances of some corpora, as those of the first one's folder.

    Ids begin with the name of their corpus. So do speakers whose names several corpora have: they
    are taken for different people.
    """
    if len(corpora) == 1:
        return corpora[0]
    names = _names([corpus.root for corpus in corpora])
    speakers = Counter(speaker for corpus in corpora for speaker in corpus.speakers)
    shared = {speaker for speaker, count in speakers.items() if count > 1}
    utterances: list[Utterance] = []
    positions: list[int] = []
    rejections: list[Rejection] = []
    for name, corpus in zip(names, corpora, strict=True):
        held_out = {utterance.id for utterance in corpus.val}
        for utterance in corpus.utterances:
            if utterance.id in held_out:
                positions.append(len(utterances))
            utterances.append(_renamed(utterance, name, shared))
        rejections += [replace(one, id=f"{name}/{one.id}") for one in corpus.rejections]
    chosen = set(positions)
    return Corpus(
        corpora[0].root,
        "\n".join(f"{name}: {corpus.dialect}" for name, corpus in zip(names, corpora, strict=True)),
        tuple(one for at, one in enumerate(utterances) if at not in chosen),
        tuple(one for at, one in enumerate(utterances) if at in chosen),
        tuple(rejections),
        tuple(positions),
    )


def _renamed(utterance: Utterance, name: str, shared: set[str]) -> Utterance:
    speaker = utterance.speaker
    return replace(
        utterance,
        id=f"{name}/{utterance.id}",
        speaker=f"{name}/{speaker}" if speaker in shared else speaker,
    )


def _names(roots: Sequence[Path]) -> list[str]:
    """The folders' names, numbered where two are the same."""
    seen: Counter[str] = Counter()
    names = []
    for root in roots:
        seen[root.name] += 1
        names.append(root.name if seen[root.name] == 1 else f"{root.name}-{seen[root.name]}")
    return names
