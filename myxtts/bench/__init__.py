"""Measuring kits: loaders, modes, steps, and settings that are chosen by measuring."""
