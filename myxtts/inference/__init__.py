"""From a voice directory and text to speech."""
