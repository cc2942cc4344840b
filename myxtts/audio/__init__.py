"""Recordings to waveforms and features."""
