"""What combines training, inference and evaluation; a script may import it as the commands do."""
