"""How good a voice is: what a recogniser understands of it, in figures, pictures and one page."""
