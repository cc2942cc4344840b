"""Corpora, the feature cache and the batches made from it."""
