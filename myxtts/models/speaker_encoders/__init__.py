"""Speaker encoders: recordings into speaker embeddings."""
