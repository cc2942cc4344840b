"""Reading a corpus: recordings, metadata in many dialects, and what is dropped."""
