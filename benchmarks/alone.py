"""Imported before NumPy and TensorFlow, this keeps a benchmark and their threads on one core.

Two threads that share the units of a core would each count their waiting for them as CPU time.
"""

import os

CORE = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CORE})
