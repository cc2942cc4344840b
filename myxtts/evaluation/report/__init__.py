"""Pages and plots of what was measured."""
