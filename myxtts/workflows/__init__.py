"""Workflows that combine training, inference and evaluation, for commands and scripts."""
