"""Several processes that train one model: who they are, how they add up, and signs of life."""
