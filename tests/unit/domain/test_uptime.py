"""Uptime of the server: a worker's silence counts only while a server is running."""

from datetime import UTC, datetime, timedelta

from app.domain.uptime import UptimeLog

START = datetime(2026, 1, 1, tzinfo=UTC)


def get_time(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_silence_is_the_uptime_since_the_last_heartbeat() -> None:
    log = UptimeLog(keep_seconds=100)
    assert log.seconds_since(get_time(0)) == 0
    for second in range(0, 60, 10):
        log.note(get_time(second), 500 + second)
    assert log.seconds_since(get_time(20)) == 30
    assert log.seconds_since(get_time(11)) == 30, "counted from the first look after it"
    assert log.seconds_since(get_time(-1_000)) == 50, "not before the first look"
    assert log.seconds_since(get_time(51)) == 0


def test_time_without_a_server_does_not_count_and_takes_no_memory() -> None:
    log = UptimeLog(keep_seconds=100)
    log.note(get_time(0), 7)
    for second in range(10, 10_000, 10):
        log.note(get_time(second), 7)
    log.note(get_time(10_000), 9)
    assert log.seconds_since(get_time(0)) == log.seconds_since(get_time(5_000)) == 2
    assert len(log._times) == 3


def test_old_samples_are_removed_and_a_clock_set_back_removes_all() -> None:
    log = UptimeLog(keep_seconds=100)
    for second in range(0, 1_000, 10):
        log.note(get_time(second), float(second))
    assert 100 <= log.seconds_since(get_time(0)) <= 120
    assert len(log._times) <= 13
    log.note(get_time(500), 1_000)
    assert log.seconds_since(get_time(0)) == 0
