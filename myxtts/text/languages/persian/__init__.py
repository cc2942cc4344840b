"""Persian."""
