"""Metrics of speech."""
