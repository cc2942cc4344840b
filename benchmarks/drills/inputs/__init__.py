"""Hostile inputs by kind: each module has KIND, BOUNDS, COUNT, PER_CASE, set_up and inputs."""
