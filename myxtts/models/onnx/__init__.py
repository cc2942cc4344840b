"""Exported graphs behind the interfaces of the models, run by onnxruntime, without TensorFlow."""
