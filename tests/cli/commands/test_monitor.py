import csv
import io
import os
import pty
import signal
import threading
from pathlib import Path

import pytest
from rich.console import Console

from myxtts.cli.commands import monitor
from myxtts.errors import UserError
from myxtts.monitoring import live
from myxtts.monitoring.gpus import GpuProcess, GpuReader, GpuSample
from myxtts.monitoring.live import columns, describe, line, process_lines, screen
from myxtts.monitoring.system import MeanMax, SystemSample

ROOT = Path(__file__).parents[3]
L4 = GpuSample(
    index=0,
    name="NVIDIA L4",
    utilisation=87,
    memory_used_mb=6000.0,
    memory_total_mb=24000.0,
    power_w=65.5,
    power_limit_w=72.0,
    temperature_c=71,
    sm_clock_mhz=1590,
    throttling=("power cap", "thermal, by software"),
)
SAMPLE = SystemSample(
    seconds=12.0,
    cpu_percent=75.0,
    core_percents=(100.0, 50.0),
    memory_used_mb=2000.0,
    memory_limit_mb=8000.0,
    memory_percent=25.0,
    disk_read_mb_s=10.0,
    disk_write_mb_s=2.5,
    gpus=(L4,),
)
ON_L4 = (
    "NVIDIA L4: 87 %, 6.0 of 24.0 GB, 65.5 of 72.0 W, 71 °C, 1590 MHz, "
    "held back: power cap, thermal, by software"
)
TRAINING = GpuProcess(0, 4711, "python train_main.py", 5000.0)


def pictured(sample, gpu_lines) -> list[str]:
    console = Console(file=io.StringIO(), width=160, force_terminal=False)
    console.print(screen(sample, gpu_lines))
    return [text.rstrip() for text in console.file.getvalue().splitlines()]


def test_a_line_says_all_of_a_sample():
    assert line(SAMPLE) == (
        "   12.0 s | CPU 75.0 % | memory 2.0 of 8.0 GB | disk 10.0 MB/s read, 2.5 written | "
        f"GPU 0 {ON_L4}"
    )


def test_what_is_not_known_is_not_made_up():
    unknown = SystemSample(1.0, gpus=(GpuSample(0, "GPU 0", problem="GPU is lost"),))
    assert line(unknown) == (
        "    1.0 s | CPU ? % | memory ? of ? GB | disk ? MB/s read, ? written | "
        "GPU 0 GPU 0: GPU is lost"
    )
    assert set(columns(unknown).values()) == {"1.000", "GPU 0", ""}


def test_the_picture_has_a_bar_for_every_core():
    bars = "█" * 20, "█" * 10 + "░" * 10
    assert pictured(SAMPLE, process_lines([TRAINING])) == [
        "12 s (Ctrl-C ends)",
        f"CPU       {'█' * 15}{'░' * 5}  75.0 %",
        f"core 0    {bars[0]} 100.0 %   core 1    {bars[1]}  50.0 %",
        f"memory    {'█' * 5}{'░' * 15}  25.0 %  2.0 of 8.0 GB",
        "disk      10.0 MB/s read, 2.5 written",
        f"GPU 0     {'█' * 17}{'░' * 3}    87 %  {ON_L4}",
        "GPU 0 is used by python train_main.py (process 4711, 5.0 GB)",
    ]


def test_brackets_in_a_reason_are_shown():
    assert pictured(SystemSample(1.0), ["pip install 'myxtts[gpu]'"])[-1].endswith("'myxtts[gpu]'")


def test_it_says_whether_anything_computes_on_a_gpu():
    assert process_lines([]) == [live.UNUSED]


def test_the_summary_has_means_and_maxima():
    summary = {
        "cpu_percent": MeanMax(50.0, 90.0),
        "quota_percent": MeanMax(0.4, 1.0),
        "gpu0.utilisation": MeanMax(80.0, 99.0),
    }
    assert describe(summary, 3, SAMPLE, 2).splitlines() == [
        "3 samples, the last after 12.0 s:",
        "  CPU: mean 50.0 %, at most 90.0 %",
        "  GPU 0 kernels running: mean 80.0 %, at most 99.0 %",
        "  this monitor took 0.4 % of 2 cores",
    ]
    assert describe({}, 0, None, 2) == "stopped before the first sample"


def test_a_change_of_the_processes_is_printed_once(capsys):
    show = live.Lines(without_gpu=False)
    for processes in ([], [TRAINING], [TRAINING]):
        show(SAMPLE, processes)
    said = [text for text in capsys.readouterr().out.splitlines() if text != line(SAMPLE)]
    assert said == [live.UNUSED, *process_lines([TRAINING])]


def test_it_samples_for_a_while_and_writes_a_table(capsys, tmp_path):
    path = tmp_path / "log.csv"
    argv = ["--interval", "0.02", "--duration", "0.1", "--log-file", str(path)]
    assert monitor.main(argv) == 0
    out = capsys.readouterr().out
    rows = list(csv.DictReader(path.open()))
    assert f"{len(rows)} samples, the last after" in out and len(rows) >= 1
    assert out.splitlines()[-1] == f"every sample is in {path}"
    assert sum(" | CPU " in text for text in out.splitlines()) == len(rows)
    for row in rows:
        assert None not in row and None not in row.values()
        assert 0 <= float(row["core0_percent"]) <= 100
        assert 0 < float(row["memory_used_mb"]) < float(row["memory_limit_mb"])


def test_the_gpus_have_columns_of_their_own(monkeypatch, tmp_path):
    class Reader(GpuReader):
        def read(self):
            return (L4,)

        def processes(self):
            return (TRAINING,)

    monkeypatch.setattr(GpuReader, "open", lambda: Reader(None))
    path = tmp_path / "log.csv"
    argv = ["--interval", "0.01", "--duration", "0.01", "--log-file", str(path)]
    assert monitor.main(argv) == 0
    row = next(csv.DictReader(path.open()))
    assert row["gpu0_name"] == "NVIDIA L4" and row["gpu0_utilisation"] == "87"
    assert row["gpu0_power_w"] == "65.50" and row["gpu0_memory_clock_mhz"] == ""
    assert row["gpu0_throttling"] == "power cap; thermal, by software"


def test_a_table_without_a_name_gets_one(capsys, tmp_path):
    assert monitor.main(["--interval", "0.01", "--duration", "0.01", "--log-file"]) == 0
    (path,) = tmp_path.glob("gpu_monitor_????????_??????.csv")
    assert f"writing every sample to {path.name}" in capsys.readouterr().out


def test_without_a_gpu_one_line_says_why(capsys, monkeypatch):
    monkeypatch.setattr(GpuReader, "open", lambda: GpuReader(None, "no driver answers"))
    assert monitor.main(["--interval", "0.01", "--duration", "0.02"]) == 0
    out = capsys.readouterr().out
    assert out.count("no GPU is watched: no driver answers") == 1
    assert live.UNUSED not in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--interval", "0"], "--interval must be a number of seconds above 0, got 0"),
        (["--interval", "-1"], "got -1"),
        (["--interval", "nan"], "got nan"),
        (["--duration", "0"], "--duration must be a number of seconds above 0, got 0"),
        (["--log-file", "missing/log.csv"], "cannot write to missing/log.csv (No such file"),
        (["--log-file", "taken.csv"], "taken.csv is there already"),
        (["--log-file", "."], "name another"),
    ],
)
def test_bad_values_are_rejectd(capsys, tmp_path, argv, message):
    (tmp_path / "taken.csv").write_text("mine")
    assert monitor.main([*argv, "--duration", "1"] if "--duration" not in argv else argv) == 2
    out, err = capsys.readouterr()
    assert message in err and "Traceback" not in err and "samples" not in out
    assert (tmp_path / "taken.csv").read_text() == "mine"


def test_a_full_disk_is_said():
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with open("/dev/full", "wb", buffering=0) as full:
        with pytest.raises(UserError, match="cannot write to log.csv .No space left"):
            live.Table(Path("log.csv"), full, ["seconds"])


def test_a_row_that_does_not_fit_is_taken_back(tmp_path):
    class Filling(io.FileIO):
        def write(self, row):
            return super().write(row[:30])

    with Filling(tmp_path / "log.csv", "w") as file:
        table = live.Table(Path("log.csv"), file, ["seconds"])
        with pytest.raises(UserError, match="the rows before are there"):
            table(SystemSample(1234567.0))
    assert (tmp_path / "log.csv").read_text() == "time,seconds\n"


def test_interrupting_is_how_it_ends(program, tmp_path):
    path = tmp_path / "log.csv"
    running = program(ROOT / "gpu_monitor.py", "--interval", "0.05", "--log-file", path)
    out = []
    for text in running.stdout:
        out.append(text)
        if " | CPU " in text:
            running.send_signal(signal.SIGINT)
            break
    rest, err = running.communicate(timeout=60)
    assert running.returncode == 0 and err == ""
    assert f"every sample is in {path}" in rest and "samples, the last after" in rest
    rows = list(csv.DictReader(path.open()))
    assert rows and path.read_text().endswith("\n")
    assert all(None not in row.values() for row in rows)


def test_on_a_terminal_there_is_a_picture(program):
    ours, theirs = pty.openpty()
    argv = (ROOT / "gpu_monitor.py", "--interval", "0.05", "--duration", "0.1")
    running = program(*argv, stdout=theirs)
    seen = []
    reading = threading.Thread(target=_read_all, args=(ours, seen), daemon=True)
    reading.start()
    _, err = running.communicate(timeout=60)
    os.close(theirs)
    reading.join(timeout=60)
    os.close(ours)
    assert running.returncode == 0 and err == ""
    shown = b"".join(seen).decode()
    assert "core 0" in shown and "░" in shown and "Ctrl-C ends" in shown
    assert " | CPU " not in shown


def _read_all(descriptor, seen):
    try:
        while text := os.read(descriptor, 65536):
            seen.append(text)
    except OSError:  # the other end is closed
        pass
