"""Exports of voices, one function for each target."""
