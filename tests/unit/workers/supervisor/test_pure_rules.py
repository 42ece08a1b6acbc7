"""Pure functions of host and supervisor: outcomes, limits, orders, slots and options."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import make_work_order

from palestra.addresses import mask_password
from palestra.backoff import Backoff
from palestra.contract.job_options import Limits, Resources
from palestra.contract.names import Schedule, new_id
from palestra.contract.registration import Gpu
from palestra.contract.states import Cause, Order, Outcome
from palestra.contract.work_order import AttemptReport
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.host.broker import SETTINGS
from workers.host.options import UsageError, choose_gpus, parse_options, read_token
from workers.host.registration import list_local_attempts
from workers.host.worker import make_app
from workers.ipc.allowed_paths import set_allowed_paths
from workers.ipc.attempt_directory import AttemptDirectory, write_identity
from workers.ipc.process_tree import ProcessIdentity, boot_id, identify
from workers.ipc.worker_imports import set_allowed_imports
from workers.supervisor.limits import Breach, LimitWatch
from workers.supervisor.outcome import TrainerExit, report_of
from workers.supervisor.pending_order import PendingOrder
from workers.supervisor.trainer_handle import TrainerOptions, trainer_environment

BREACH = Breach(Cause.TIME_LIMIT, "too long")


def report(outcome: Outcome, cause: Cause) -> AttemptReport:
    return AttemptReport(outcome=outcome, cause=cause, env_step=7)


@pytest.mark.parametrize(
    ("ending", "outcome", "cause"),
    [
        (
            {
                "exit_status": 0,
                "report": report(Outcome.SUCCEEDED, Cause.BUDGET),
                "order": Order.CONTINUE,
            },
            "succeeded",
            "budget",
        ),
        (
            {
                "exit_status": 0,
                "report": report(Outcome.SUCCEEDED, Cause.BUDGET),
                "order": Order.CANCEL,
            },
            "succeeded",
            "budget",
        ),
        (
            {"exit_status": 0, "report": report(Outcome.PAUSED, Cause.USER), "order": Order.PAUSE},
            "paused",
            "user",
        ),
        (
            {
                "exit_status": 1,
                "report": report(Outcome.FAILED, Cause.USER_EXCEPTION),
                "order": Order.PAUSE,
            },
            "failed",
            "user_exception",
        ),
        (
            {
                "exit_status": 0,
                "report": report(Outcome.DRAINED, Cause.DRAIN),
                "order": Order.CONTINUE,
                "breach": BREACH,
            },
            "failed",
            "time_limit",
        ),
        (
            {
                "exit_status": 0,
                "report": report(Outcome.SUCCEEDED, Cause.BUDGET),
                "order": Order.CONTINUE,
                "breach": BREACH,
            },
            "succeeded",
            "budget",
        ),
        (
            {
                "exit_status": -6,
                "report": None,
                "order": Order.CONTINUE,
                "breach": Breach(Cause.STALLED, "s"),
            },
            "failed",
            "stalled",
        ),
        ({"exit_status": -9, "report": None, "order": Order.CANCEL}, "cancelled", "user"),
        ({"exit_status": -9, "report": None, "order": Order.PAUSE}, "paused", "user"),
        ({"exit_status": -9, "report": None, "order": Order.DRAIN}, "drained", "drain"),
        ({"exit_status": -9, "report": None, "order": Order.STALE}, "lost", "stale"),
        ({"exit_status": -9, "report": None, "order": Order.CONTINUE}, "failed", "trainer_killed"),
        (
            {
                "exit_status": -9,
                "report": None,
                "order": Order.CONTINUE,
                "was_killed_for_memory": True,
            },
            "failed",
            "host_out_of_memory",
        ),
        ({"exit_status": 0, "report": None, "order": Order.CONTINUE}, "failed", "no_result"),
        ({"exit_status": None, "report": None, "order": Order.CANCEL}, "cancelled", "user"),
        ({"exit_status": None, "order": Order.CONTINUE}, "failed", "not_started"),
        *(
            ({"order": Order.CONTINUE, "is_started": False, **ending}, "failed", "not_started")
            for ending in (
                {"exit_status": 1},
                {"exit_status": -9},
                {"exit_status": 1, "is_disk_full": True},
                {"exit_status": -9, "was_killed_for_memory": True},
            )
        ),
        ({"exit_status": -9, "order": Order.PAUSE, "is_started": False}, "paused", "user"),
        (
            {
                "exit_status": -6,
                "order": Order.CONTINUE,
                "is_started": False,
                "breach": Breach(Cause.STALLED, "s"),
            },
            "failed",
            "stalled",
        ),
    ],
)
def test_outcomes_follow_from_report_exit_and_orders(ending, outcome, cause):
    found = report_of(TrainerExit(**{"report": None, **ending}))
    assert (found.outcome, found.cause) == (outcome, cause)
    assert (found.failure is not None) == (
        outcome == "failed" and (ending.get("report") is None or "breach" in ending)
    )


def test_limits_of_time_end_an_attempt():
    watch = LimitWatch(
        Schedule.TRAIN, Limits(wall_seconds=100, stall_seconds=10), Resources(), 1_000.0
    )
    assert watch.check(1_009.0, {}) is None
    assert watch.check(1_009.5, {"env_step": 1}) is None
    assert watch.check(1_019.0, {"env_step": 1}) is None
    stalled = watch.check(1_019.6, {"env_step": 1})
    assert stalled is not None
    assert stalled.cause is Cause.STALLED
    assert watch.check(1_099.0, {"env_step": 2}) is None
    ended = watch.check(1_100.0, {"env_step": 3})
    assert ended is not None
    assert ended.cause is Cause.TIME_LIMIT


def test_an_evaluation_does_not_stall():
    watch = LimitWatch(Schedule.EVALUATE, Limits(stall_seconds=10), Resources(), 0.0)
    assert watch.check(10_000.0, {}) is None


def test_memory_above_the_limit_is_a_breach():
    watch = LimitWatch(Schedule.TRAIN, Limits(), Resources(memory_mib=100), 0.0)
    assert watch.limits_memory
    assert watch.check_memory(100.0) is None
    assert watch.check_memory(100.5) is not None
    assert not LimitWatch(Schedule.TRAIN, Limits(), Resources(), 0.0).limits_memory


def test_a_weaker_order_does_not_replace_a_stronger_one():
    box = PendingOrder()
    for given, kept in (
        ("pause", "pause"),
        ("drain", "pause"),
        ("continue", "pause"),
        ("cancel", "cancel"),
        ("stale", "stale"),
        ("pause", "stale"),
    ):
        box.give(Order(given))
        assert box.order == kept
    assert box.stale.is_set()


def test_an_order_wakes_its_waiter():
    box = PendingOrder()
    waiter = threading.Thread(target=box.wait, args=(threading.TIMEOUT_MAX,), daemon=True)
    waiter.start()
    box.give(Order.PAUSE)
    waiter.join(PATIENCE_SECONDS)
    assert not waiter.is_alive()


GPUS = (Gpu(index=0, name="a", memory_mib=1), Gpu(index=1, name="b", memory_mib=1))


@pytest.mark.parametrize(
    ("text", "chosen"), [("", ()), ("0", (0,)), ("1,0", (1, 0)), ("all", (0, 1))]
)
def test_gpus_are_chosen_by_index_or_uuid(text, chosen):
    assert tuple(gpu.index for gpu in choose_gpus(text, GPUS)) == chosen


@pytest.mark.parametrize(
    ("text", "present", "said"),
    [
        ("7", GPUS, "GPU 7"),
        ("0", (), "nvidia-smi"),
        ("all", (), "nvidia-smi"),
        ("x", GPUS, "indices"),
        ("0,0", GPUS, "twice"),
    ],
)
def test_unknown_gpus_are_refused(text, present, said):
    with pytest.raises(UsageError, match=said):
        choose_gpus(text, present)


def test_the_token_file_must_be_private_and_not_empty(tmp_path: Path):
    path = tmp_path / "token"
    with pytest.raises(UsageError, match="cannot read the token file"):
        read_token(path)
    path.write_text("plr_secret\n")
    for mode in (0o644, 0o640, 0o660):
        path.chmod(mode)
        with pytest.raises(UsageError, match=f"chmod 600 {path}"):
            read_token(path)
    path.chmod(0o600)
    assert read_token(path) == "plr_secret"
    path.write_text("two words")
    with pytest.raises(UsageError, match="one token"):
        read_token(path)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--slots", "0"], "--slots"),
        (["--server", "localhost:8080"], "--server"),
        (["--server", "http://user:pw@host"], "--server must not hold a user"),
        (["--broker", "amqp://user:pw@host"], "--broker must begin with redis://"),
        (["--pool", "a b"], "--pool"),
        (["--name", "\u202e"], "--name"),
        (
            ["--import", "json", "--import", "nowhere_at_all"],
            "--import: Python finds no module 'nowhere_at_all'",
        ),
        (["--import", "a b"], "--import: 'a b' is not the name of a module"),
    ],
)
def test_invalid_options_are_refused_with_a_remedy(tmp_path: Path, option, said):
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("t")
    with pytest.raises(UsageError, match=said):
        parse_options(["--server", "http://x", "--token-file", str(path), *option])


def test_addresses_of_a_workers_options_are_normalised(tmp_path: Path):
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("t")
    options = parse_options(
        [
            *("--server", "HTTPS://Lab.Example.org:443/palestra/"),
            *("--broker", "valkey://Broker:6379/0"),
            *("--token-file", str(path)),
        ]
    )
    assert options.server == "https://lab.example.org/palestra"
    assert options.broker == "redis://broker:6379/0"


def test_only_imports_and_allowed_paths_of_a_workers_settings_reach_the_trainer(tmp_path: Path):
    """Trainers and evaluation processes import these modules to register their environments."""
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("t")
    of_definitions = ["--import", "json", "--import", "csv", "--allow-path", str(tmp_path)]
    options = parse_options(["--server", "http://x", "--token-file", str(path), *of_definitions])
    environ = {"PALESTRA_TOKEN": "x", "PALESTRA_DATA_DIR": "y"}
    set_allowed_imports(options.imports, environ)
    set_allowed_paths(options.allowed_paths, environ)
    found = trainer_environment(
        environ, AttemptDirectory(tmp_path / "attempts" / "att_1"), 3, TrainerOptions()
    )
    assert found["PALESTRA_WORKER_IMPORTS"] == "json,csv"
    assert found["PALESTRA_WORKER_ALLOWED_PATHS"] == str(tmp_path)
    assert not {"PALESTRA_TOKEN", "PALESTRA_DATA_DIR"} & set(found)


def test_the_command_refuses_an_open_token_file(tmp_path: Path):
    path = tmp_path / "token"
    path.write_text("plr_secret")
    path.chmod(0o644)
    command = [
        sys.executable,
        "-m",
        "workers.host",
        "--server",
        "http://127.0.0.1:9",
        "--token-file",
        str(path),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 2
    assert "chmod 600" in done.stderr
    assert "Traceback" not in done.stderr
    assert "plr_secret" not in done.stderr


def test_passwords_are_masked():
    assert mask_password("redis://user:hunter2@h:1/0") == "redis://user:***@h:1/0"
    assert mask_password("redis://:hunter%402@h:1/0") == "redis://:***@h:1/0"
    assert mask_password("redis://h:1/0") == "redis://h:1/0"
    assert (
        mask_password("a redis://u:p@s:s@h:1/0, b://c:d@e") == "a redis://u:***@h:1/0, b://c:***@e"
    )


def test_celery_neither_prefetches_nor_stores_results():
    conf = make_app("redis://h/0", "q").conf
    assert conf.worker_disable_prefetch is True
    assert conf.worker_prefetch_multiplier == 1
    assert conf.accept_content == ["json"]
    assert conf.task_acks_late is False
    assert conf.result_backend is None
    assert conf.worker_cancel_long_running_tasks_on_connection_loss is False
    assert conf.worker_enable_remote_control is False
    assert conf.worker_max_tasks_per_child == 50
    assert conf.broker_transport_options["visibility_timeout"] == 3_600
    assert conf.broker_transport_options["socket_timeout"] > 0
    assert conf.task_time_limit is None
    assert set(SETTINGS) <= set(conf.keys())


def test_the_census_finds_live_and_dead_attempts(tmp_path: Path):
    def make_attempt() -> AttemptDirectory:
        directory = AttemptDirectory(tmp_path / "attempts" / new_id("att"))
        directory.create(make_work_order().model_dump_json().encode())
        return directory

    mine = identify(os.getpid())
    live, starting, silent, gone, rebooted, reused, released, told, old = (
        make_attempt() for _ in range(9)
    )
    write_identity(live.supervisor_pid, mine)
    write_identity(gone.supervisor_pid, ProcessIdentity(2**22 - 1, 1, boot_id()))
    write_identity(
        rebooted.supervisor_pid, ProcessIdentity(mine.pid, mine.start_ticks, "another-boot")
    )
    write_identity(
        reused.supervisor_pid, ProcessIdentity(mine.pid, mine.start_ticks + 1, mine.boot_id)
    )
    released.released.touch()
    told.reported_dead.touch()
    old.released.touch()
    os.utime(old.released, (1, 1))
    os.utime(silent.root, (1, 1))
    census = list_local_attempts(tmp_path, time.time())
    assert {found.attempt_id for found in census.live} == {live.attempt_id, starting.attempt_id}
    assert {found.attempt_id for found in census.dead} == {
        found.attempt_id for found in (silent, gone, rebooted, reused)
    }
    assert not old.root.exists()
    assert released.root.exists()


def test_a_zombie_process_counts_as_dead():
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    identity = identify(process.pid)
    wait_for(lambda: not identity.is_alive(), "the process ends")
    process.wait()


def test_backoff_grows_and_stops():
    stop = threading.Event()
    backoff = Backoff(stop, longest=0.01)
    assert backoff.wait() is False
    assert backoff.failures == 1
    stop.set()
    assert backoff.wait(PATIENCE_SECONDS) is True
