"""Text to token ids, the same for training, validation and inference."""
