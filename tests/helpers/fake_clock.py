"""A clock that stands still until somebody moves it."""


class FakeClock:
    """Seconds that pass only by `advance`; `cpu` counts those in which the caller was at work."""

    def __init__(self):
        self.now = 100.0
        self.cpu = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float, cpu: bool = False) -> None:
        self.now += seconds
        self.cpu += seconds if cpu else 0.0

    def cpu_clock(self) -> float:
        return self.cpu
