"""The built-in corpus, which espeak-ng speaks."""
