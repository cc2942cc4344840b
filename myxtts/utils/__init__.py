"""Faces: earlier import paths over the code that does the work."""
