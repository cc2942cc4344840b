"""From a trained voice to graphs that run without TensorFlow."""
