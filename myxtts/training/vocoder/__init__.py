"""Training of vocoders."""
