"""Languages in the Latin alphabet, each with its further letters."""
