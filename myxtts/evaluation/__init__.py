"""How good a voice is: a table of metrics, one evaluator, and one report."""
