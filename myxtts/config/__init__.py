"""Typed settings: dataclasses, YAML, flags and presets."""
