"""Timers, system samples and verdicts that serve any training script."""
