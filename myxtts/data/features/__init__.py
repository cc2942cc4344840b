"""What is computed of a corpus and stored: features, tokens, embeddings, waveforms."""
