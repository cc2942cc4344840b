"""Pages and plots of evaluations."""
