"""What would hold a run on many workers back: figures of this machine, a forecast, a verdict."""
