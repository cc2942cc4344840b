import threading

import pytest

import myxtts.monitoring.monitor as monitoring
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.profiler import usable_profiler
from myxtts.data.batches.training_data import TrainingData
from myxtts.monitoring.monitor import PerformanceMonitor
from myxtts.utils import performance
from tests.helpers.fake_clock import FakeClock
from tests.helpers.make_corpus import make_corpus


def test_it_says_what_holds_the_steps_back():
    monitor = PerformanceMonitor()
    for _ in range(10):
        monitor.log_step_timing(0.03, 0.01, 16)
    found = monitor.get_bottleneck_analysis()
    assert found["bottleneck"] == "input" and found["utilisation"] == pytest.approx(0.25)
    assert found["samples_per_second"] == pytest.approx(400.0)
    assert found["data_ms"]["mean"] == pytest.approx(30.0) and found["loading"] == "slow"
    assert len(found["recommendations"]) == 1
    assert "Verdict: Highly input-bound: 75.0 % of the time" in monitor.get_summary_report()


def test_a_healthy_run_has_no_recommendation():
    monitor = PerformanceMonitor()
    monitor.log_step_timing(0.0001, 0.02, 16)
    found = monitor.get_bottleneck_analysis()
    assert found["bottleneck"] == "healthy" and found["recommendations"] == []


def test_without_steps_there_is_no_verdict():
    found = PerformanceMonitor().get_bottleneck_analysis()
    assert "bottleneck" not in found and found["operations"] == {}
    report = PerformanceMonitor().get_summary_report()
    assert "Steps: none was logged" in report and "Machine: not sampled" in report


def test_operations_are_timed_by_name_from_any_thread():
    clock = FakeClock()
    monitor = PerformanceMonitor(clock=clock)
    for _ in range(2):
        with monitor.time_operation("load"):
            clock.advance(0.5)
    other = threading.Thread(target=lambda: monitor.time_operation("save").__enter__())
    other.start()
    other.join()
    assert monitor.get_bottleneck_analysis()["operations"]["load"] == {"seconds": 1.0, "calls": 2}
    assert "load: 2 x 500.00 ms = 1.00 s" in monitor.get_summary_report()


def test_the_data_engine_takes_it_as_its_profiler():
    monitor = PerformanceMonitor()
    assert usable_profiler(monitor) is monitor
    for _ in range(3):
        monitor.record_cache_hit()
    monitor.record_cache_miss()
    monitor.record_cache_error()
    assert monitor.get_bottleneck_analysis()["cache"] == {"hits": 3, "misses": 1, "errors": 1}
    assert "Cache: 3 hits, 1 misses, 1 errors (75.0 % found)" in monitor.get_summary_report()


def test_the_machine_is_sampled_in_the_background():
    monitor = PerformanceMonitor(interval=0.01)
    monitor.start()
    while len(monitor.sampler.samples) < 2:
        threading.Event().wait(0.01)
    monitor.stop()
    system = monitor.get_bottleneck_analysis()["system"]
    assert 0.0 <= system["cpu_percent"]["mean"] <= system["cpu_percent"]["maximum"] <= 100.0
    assert "CPU: mean" in monitor.get_summary_report()


def test_a_process_has_one_monitor_and_prints_its_report(monkeypatch, capsys):
    monkeypatch.setattr(monitoring, "_own", None)
    monitor = performance.get_performance_monitor()
    assert performance.start_performance_monitoring() is monitor
    performance.stop_performance_monitoring()
    monitor.log_step_timing(0.0, 1.0, 4)
    performance.print_performance_report()
    assert "Verdict: Healthy" in capsys.readouterr().out


def test_training_data_report_to_the_monitor_of_the_process(monkeypatch, tmp_path):
    monkeypatch.setattr(monitoring, "_own", None)
    corpus = make_corpus(tmp_path / "corpus", 8)
    config = XTTSConfig(data_path=str(corpus), preprocessing_mode="precompute", val_fraction=0.0)
    TrainingData(config)
    found = performance.get_performance_monitor().get_bottleneck_analysis()
    assert found["cache"] == {"hits": 8, "misses": 0, "errors": 0}
