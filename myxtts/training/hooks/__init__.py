"""What happens between training steps."""
