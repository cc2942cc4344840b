"""Losses, steps, the loop and its hooks: from batches to a voice."""
