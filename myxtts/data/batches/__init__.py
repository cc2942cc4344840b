"""Batches of whole utterances for a training step."""
