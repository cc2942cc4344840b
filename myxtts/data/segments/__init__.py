"""Batches of short segments for a vocoder."""
