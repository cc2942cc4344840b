"""Old name of `myxtts.monitoring.monitor`."""

from myxtts.monitoring.monitor import (
    PerformanceMonitor,
    get_performance_monitor,
    print_performance_report,
    start_performance_monitoring,
    stop_performance_monitoring,
)

__all__ = [
    "PerformanceMonitor",
    "get_performance_monitor",
    "print_performance_report",
    "start_performance_monitoring",
    "stop_performance_monitoring",
]
