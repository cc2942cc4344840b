"""Training of the ezafe tagger: logistic regression on hashed features."""

from typing import NamedTuple

import numpy as np

from myxtts.text.languages.persian.features import TABLE_BITS, hash_features
from tools.persian.annotated import Sentence

_EPOCHS, _BATCH, _RATE = 12, 128, 0.05
_FIRST_SQUARES = 1e-2  # what Adagrad's sums of squares start from
_BIAS_RATE = 0.01


class Model(NamedTuple):
    """Weights of the hashed features, and a bias."""

    weights: np.ndarray
    bias: float


class Examples(NamedTuple):
    """Features of words, [words, templates], whether each has an ezafe, and what it counts."""

    features: np.ndarray
    labels: np.ndarray
    counts: np.ndarray


def examples_of(sentences: list[Sentence], count: float = 1.0) -> Examples:
    """Take all words whose ezafe is known."""
    features = hash_features([sentence.words for sentence in sentences])
    marks = [mark for sentence in sentences for mark in sentence.ezafes]
    known = np.array([mark is not None for mark in marks], bool)
    labels = np.array([bool(mark) for mark in marks], np.float32)[known]
    return Examples(features[known], labels, np.full(len(labels), count, np.float32))


def join(parts: list[Examples]) -> Examples:
    """Put examples one after another."""
    return Examples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def train(examples: Examples, seed: int = 1) -> Model:
    """Minimise the log loss by Adagrad; the weights of the later epochs are averaged."""
    rng = np.random.default_rng(seed)
    weights = np.zeros(2**TABLE_BITS, np.float32)
    squares = np.full(2**TABLE_BITS, _FIRST_SQUARES, np.float32)
    total, bias = np.zeros(2**TABLE_BITS), 0.0
    count = len(examples.labels)
    for epoch in range(_EPOCHS):
        for part in np.array_split(rng.permutation(count), max(1, count // _BATCH)):
            bias = _step(weights, squares, bias, Examples(*(array[part] for array in examples)))
        if epoch >= _EPOCHS // 2:
            total += weights / (_EPOCHS - _EPOCHS // 2)
    return Model(total.astype(np.float32), bias)


def _step(weights: np.ndarray, squares: np.ndarray, bias: float, batch: Examples) -> float:
    """Change the weights in place, and return the new bias."""
    rows = batch.features
    scores = weights[rows].sum(1) + bias
    errors = (1 / (1 + np.exp(-scores)) - batch.labels) * batch.counts
    touched, inverse = np.unique(rows, return_inverse=True)
    gradient = np.bincount(inverse.ravel(), np.repeat(errors, rows.shape[1])).astype(np.float32)
    squares[touched] += gradient**2
    weights[touched] -= _RATE * gradient / np.sqrt(squares[touched])
    return bias - _BIAS_RATE * float(errors.mean())


def quantise(model: Model) -> tuple[np.ndarray, float]:
    """Write weights as bytes, and what to multiply them by."""
    scale = float(np.quantile(np.abs(model.weights[model.weights != 0]), 0.9995)) / 127
    return np.clip(np.round(model.weights / scale), -127, 127).astype(np.int8), scale


def scores_of(model: Model, features: np.ndarray) -> np.ndarray:
    """The log-odds of an ezafe."""
    return model.weights[features].sum(1) + model.bias


def precision_recall(scores: np.ndarray, labels: np.ndarray) -> tuple[float, float, float]:
    """Return precision, recall and F1 of what scores above zero."""
    found = scores > 0
    hits = float((found & (labels > 0)).sum())
    precision, recall = hits / max(found.sum(), 1), hits / max(labels.sum(), 1)
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)
