"""What is measured of speech."""
