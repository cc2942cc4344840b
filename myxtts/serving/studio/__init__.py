"""The studio: recordings, training, comparing and speaking in a browser."""
