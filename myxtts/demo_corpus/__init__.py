"""The built-in corpus, synthesized by espeak-ng."""
