"""MyXTTS: multilingual, voice-cloning text-to-speech training in TensorFlow."""

__version__ = "0.1.0"
