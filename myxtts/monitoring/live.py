"""What the machine and its GPUs do: live on a terminal, in lines, and as a table."""

import contextlib
import csv
import errno
import io
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from myxtts.errors import UserError
from myxtts.monitoring.gpus import GpuProcess, GpuReader, GpuSample
from myxtts.monitoring.system import MeanMax, SystemSample, SystemSampler

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

UNUSED = "no process computes on a GPU: whatever trains here does so on the CPU"

Show = Callable[[SystemSample, Sequence[GpuProcess]], None]


def watch(sampler: SystemSampler, gpus: GpuReader, duration: float | None, show: Show) -> None:
    """Take a sample every interval and show it, for so many seconds or without end."""
    began = time.monotonic()
    end = math.inf if duration is None else began + duration
    due = began
    sampler.sample()
    now = time.monotonic()
    while True:  # one sample at least, however busy the machine is
        due = max(due + sampler.interval, now)
        time.sleep(max(0.0, min(due, end) - now))
        sample = sampler.sample()
        assert sample is not None  # but for the first
        show(sample, gpus.processes())
        if (now := time.monotonic()) >= end:
            return


def describe(
    summary: Mapping[str, MeanMax], count: int, last: SystemSample | None, cores: int
) -> str:
    """Return the means and maxima of all samples as text."""
    if last is None:
        return "stopped before the first sample"
    lines = [f"{count:,} samples, the last after {last.seconds:.1f} s:"]
    for name, title, unit in _SUMMED:
        if name in summary:
            lines.append(_mean_max(title, summary[name], unit))
    for gpu in last.gpus:
        for name, title, unit in _SUMMED_GPU:
            if (key := f"gpu{gpu.index}.{name}") in summary:
                lines.append(_mean_max(f"GPU {gpu.index} {title}", summary[key], unit))
    if "quota_percent" in summary:
        lines.append(f"  this monitor took {summary['quota_percent'].mean:.1f} % of {cores} cores")
    return "\n".join(lines)


def line(sample: SystemSample) -> str:
    """Return a sample as one line, where the output is not a terminal."""
    parts = [f"{sample.seconds:7.1f} s", f"CPU {_number(sample.cpu_percent)} %"]
    parts.append(f"memory {_memory(sample)}")
    parts.append(f"disk {_disk(sample)}")
    parts += [f"GPU {gpu.index} {_gpu(gpu)}" for gpu in sample.gpus]
    return " | ".join(parts)


def process_lines(processes: Sequence[GpuProcess]) -> list[str]:
    """Yield which processes compute on a GPU."""
    return [
        f"GPU {one.gpu} is used by {one.name} (process {one.pid}, {_gigabytes(one.memory_mb)} GB)"
        for one in processes
    ] or [UNUSED]


def columns(sample: SystemSample) -> dict[str, object]:
    """Return a sample as a row of a table; what is not known is empty."""
    row: dict[str, object] = {"seconds": f"{sample.seconds:.3f}"}
    row |= {name: _cell(getattr(sample, name)) for name in _COLUMNS}
    for core, percent in enumerate(sample.core_percents or ()):
        row[f"core{core}_percent"] = _cell(percent)
    for gpu in sample.gpus:
        row[f"gpu{gpu.index}_name"] = gpu.name
        row |= {f"gpu{gpu.index}_{name}": _cell(getattr(gpu, name)) for name in _GPU_COLUMNS}
        row[f"gpu{gpu.index}_throttling"] = "; ".join(gpu.throttling or ())
    return row


def screen(sample: SystemSample, gpu_lines: Sequence[str]) -> "Group":
    """Return a sample as a picture of bars; `gpu_lines` stand below those of the GPUs."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    cores = [_bar(f"core {n}", percent) for n, percent in enumerate(sample.core_percents or ())]
    return Group(
        Text(f"{sample.seconds:.0f} s (Ctrl-C ends)"),
        _bar("CPU", sample.cpu_percent),
        Columns(cores, padding=(0, 3)),
        _bar("memory", sample.memory_percent, _memory(sample)),
        Text(f"{'disk':<10}{_disk(sample)}"),
        *(_bar(f"GPU {gpu.index}", gpu.utilisation, _gpu(gpu)) for gpu in sample.gpus),
        *(Text(words) for words in gpu_lines),  # as text: brackets are no markup
    )


_COLUMNS = (
    "cpu_percent", "memory_used_mb", "memory_limit_mb", "memory_percent",
    "disk_read_mb_s", "disk_write_mb_s",
)  # fmt: skip
_GPU_COLUMNS = (
    "utilisation", "memory_used_mb", "memory_total_mb", "power_w", "power_limit_w",
    "temperature_c", "sm_clock_mhz", "memory_clock_mhz",
)  # fmt: skip
_SUMMED = (
    ("cpu_percent", "CPU", "%"),
    ("memory_percent", "memory", "%"),
    ("disk_read_mb_s", "disk, read", "MB/s"),
    ("disk_write_mb_s", "disk, written", "MB/s"),
)
_SUMMED_GPU = (
    ("utilisation", "kernels running", "%"),
    ("memory_used_mb", "memory", "MB"),
    ("power_w", "power", "W"),
    ("temperature_c", "temperature", "°C"),
)


class Table:
    """Writes samples as rows, each of them whole and at once; without a path, nothing."""

    def __init__(self, path: Path | None, file: BinaryIO | None = None, names: Sequence[str] = ()):
        self.path, self._names = path, ["time", *names]
        self._file: Any = file
        if file is not None:
            self._write(self._names)

    def __call__(self, sample: SystemSample) -> None:
        if self._file is not None:
            now = datetime.now().isoformat(timespec="milliseconds")
            row = {"time": now, **columns(sample)}
            self._write([row.get(name, "") for name in self._names])

    def _write(self, values: Sequence[object]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(values)
        row, end = text.getvalue().encode(), self._file.tell()
        try:
            if self._file.write(row) < len(row):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(end)
            raise UserError(
                f"cannot write to {self.path} ({error.strerror}): free some space or name another "
                "place with --log-file; the rows before are there"
            ) from error


@contextlib.contextmanager
def open_table(wanted: str | None, gpus: GpuReader) -> Iterator[Table]:
    if wanted is None:
        yield Table(None)
        return
    path = Path(wanted or f"gpu_monitor_{datetime.now():%Y%m%d_%H%M%S}.csv")
    try:
        file = open(path, "xb", buffering=0)
    except FileExistsError as error:
        raise UserError(f"{path} is there already: name another file with --log-file") from error
    except OSError as error:
        raise UserError(
            f"cannot write to {path} ({error.strerror}): name another place with --log-file"
        ) from error
    print(f"writing every sample to {path}")
    with file:
        yield Table(path, file, list(columns(_empty_sample(gpus))))


def _empty_sample(gpus: GpuReader) -> SystemSample:
    """What has a column for each core and GPU of this machine."""
    import psutil

    return SystemSample(0.0, core_percents=(0.0,) * psutil.cpu_count(), gpus=gpus.read())


@contextlib.contextmanager
def open_view(gpus: GpuReader) -> Iterator[Show]:
    """Yield what shows a sample: a picture on a terminal, a line elsewhere."""
    nothing = f"no GPU is watched: {gpus.reason}" if gpus.reason else ""
    if not sys.stdout.isatty():
        if nothing:
            print(nothing, flush=True)
        yield Lines(bool(nothing))
        return
    from rich.live import Live

    with Live(auto_refresh=False, vertical_overflow="crop") as live:

        def show(sample: SystemSample, processes: Sequence[GpuProcess]) -> None:
            live.update(
                screen(sample, [nothing] if nothing else process_lines(processes)), refresh=True
            )

        yield show


class Lines:
    """Prints each sample, and who computes on a GPU whenever that changes."""

    def __init__(self, without_gpu: bool):
        self.without_gpu = without_gpu
        self.said: set[tuple[int, int]] | None = None

    def __call__(self, sample: SystemSample, processes: Sequence[GpuProcess]) -> None:
        print(line(sample), flush=True)
        users = {(one.gpu, one.pid) for one in processes}
        if not self.without_gpu and users != self.said:
            self.said = users
            print("\n".join(process_lines(processes)), flush=True)


def _bar(name: str, percent: float | None, detail: str = "", width: int = 20) -> "Text":
    from rich.text import Text

    full = percent or 0.0
    filled = round(min(100.0, full) / 100 * width)
    colour = "red" if full >= 90 else "yellow" if full >= 70 else "green"
    bar = ("█" * filled, colour), "░" * (width - filled)
    return Text.assemble(f"{name:<10}", *bar, f" {_number(percent):>5} %  {detail}".rstrip())


def _memory(sample: SystemSample) -> str:
    used, limit = _gigabytes(sample.memory_used_mb), _gigabytes(sample.memory_limit_mb)
    return f"{used} of {limit} GB"


def _disk(sample: SystemSample) -> str:
    read, written = _number(sample.disk_read_mb_s), _number(sample.disk_write_mb_s)
    return f"{read} MB/s read, {written} written"


def _gpu(gpu: GpuSample) -> str:
    """All values of a GPU that the driver reports."""
    if gpu.problem:
        return f"{gpu.name}: {gpu.problem}"
    known = (
        (gpu.utilisation, f"{_number(gpu.utilisation)} %"),
        (gpu.memory_used_mb, f"{_gigabytes(gpu.memory_used_mb)} of "
         f"{_gigabytes(gpu.memory_total_mb)} GB"),
        (gpu.power_w, f"{_number(gpu.power_w)} of {_number(gpu.power_limit_w)} W"),
        (gpu.temperature_c, f"{_number(gpu.temperature_c)} °C"),
        (gpu.sm_clock_mhz, f"{_number(gpu.sm_clock_mhz)} MHz"),
    )  # fmt: skip
    parts = [words for value, words in known if value is not None]
    if gpu.throttling:
        parts.append(f"held back: {', '.join(gpu.throttling)}")
    return f"{gpu.name}: {', '.join(parts)}"


def _mean_max(title: str, found: MeanMax, unit: str) -> str:
    return f"  {title}: mean {found.mean:,.1f} {unit}, at most {found.maximum:,.1f} {unit}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}" if isinstance(value, float) else f"{value}"


def _gigabytes(megabytes: float | None) -> str:
    return "?" if megabytes is None else f"{megabytes / 1e3:.1f}"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
