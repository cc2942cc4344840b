"""Vocoders: mels into waveforms."""
