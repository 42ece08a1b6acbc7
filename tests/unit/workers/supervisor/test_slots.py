"""Slots of a worker: locks that the processes of an attempt hold."""

import fcntl
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
from itertools import combinations
from multiprocessing import synchronize
from pathlib import Path

import pytest

from app.domain.queue.placement import WorkerOffer
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.host.slots import Slots, gpus_of_slots


def test_slots_are_taken_once_and_free_when_the_last_holder_is_gone(tmp_path: Path):
    slots = Slots(tmp_path, 2)
    first, second = slots.take(), slots.take()
    assert first is not None
    assert second is not None
    assert (first.indices, second.indices) == ((0,), (1,))
    assert slots.take() is None
    assert slots.count_free() == 0
    holder = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=first.descriptors
    )
    first.release()
    assert slots.count_free() == 0, "the inherited descriptor holds it"
    holder.communicate(b"\n")
    assert slots.count_free() == 1
    again = slots.take()
    assert again is not None
    assert again.indices == (0,)
    again.release()
    second.release()


def test_a_waiting_caller_gets_a_slot_once_its_last_process_ends(tmp_path: Path):
    held = Slots(tmp_path, 1).take()
    assert held is not None
    assert Slots(tmp_path, 1).take() is None
    slots = Slots(tmp_path, 1, sleep=lambda _: held.release())
    late = slots.take(patience=PATIENCE_SECONDS)
    assert late is not None
    late.release()


def test_a_claim_waits_for_a_reader_of_the_slots(tmp_path: Path):
    """A reader holds a shared lock for a moment; without the wait the claim would find no slot."""
    Slots(tmp_path, 1)
    descriptor = os.open(tmp_path / "slots" / "0.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    held = Slots(tmp_path, 1, sleep=lambda _: os.close(descriptor)).take()
    assert held is not None
    held.release()


def test_readers_of_the_slots_and_claims_do_not_block_each_other(tmp_path: Path):
    slots, rounds = Slots(tmp_path, 1), 300
    together = threading.Barrier(2)

    def look() -> None:
        for _ in range(rounds):
            together.wait()
            slots.count_free()

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(rounds):
        together.wait()
        held = slots.take(patience=PATIENCE_SECONDS)
        assert held is not None
        held.release()
    thread.join()


@pytest.mark.parametrize(
    ("slots", "gpus", "shares"),
    [
        (2, (), [(), ()]),
        (2, (0, 1), [(0,), (1,)]),
        (1, (0, 1), [(0, 1)]),
        (2, (4, 5, 6, 7), [(4, 6), (5, 7)]),
        (4, (0, 1), [(0,), (1,), (0,), (1,)]),
    ],
)
def test_slots_share_gpus(slots, gpus, shares):
    assert [gpus_of_slots([slot], slots, gpus) for slot in range(slots)] == shares


def test_locks_do_not_leak_into_unrelated_children(tmp_path: Path):
    slots = Slots(tmp_path, 1)
    held = slots.take()
    assert held is not None
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False
    )
    held.release()
    try:
        wait_for(lambda: slots.count_free() == 1, "only inheritance on purpose holds a slot")
    finally:
        child.communicate(b"\n")


def test_several_slots_are_taken_together_or_not_at_all(tmp_path: Path):
    slots = Slots(tmp_path, 3)
    first = slots.take(2)
    assert first is not None
    assert first.indices == (0, 1)
    assert slots.take(2) is None
    last = slots.take()
    assert last is not None
    assert last.indices == (2,), "the slot that was left over was not kept by the failed attempt"
    assert slots.take(4, patience=PATIENCE_SECONDS) is None, "it is not waited for what cannot be"
    first.release()
    last.release()
    assert slots.count_free() == 3


def test_several_slots_stay_held_while_one_process_has_them(tmp_path: Path):
    slots = Slots(tmp_path, 3)
    held = slots.take(2, besides=frozenset({0}))
    assert held is not None
    assert held.indices == (1, 2)
    holder = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=held.descriptors
    )
    held.release()
    assert slots.busy_indices() == (1, 2)
    assert slots.take_these((1, 0)) is None
    assert slots.count_free() == 1
    holder.communicate(b"\n")
    again = slots.take_these((2, 1))
    assert again is not None
    assert again.indices == (1, 2)
    again.release()


def _take_often(
    directory: Path, number: int, seed: int, times: int, together: synchronize.Barrier
) -> None:
    """Takes slots and checks that nobody else has them; ends with an error if it never gets any."""
    slots, source = Slots(directory, 4), random.Random(seed)
    together.wait()
    for _ in range(times):
        held = slots.take(number, patience=PATIENCE_SECONDS)
        assert held is not None
        marks = [directory / f"taken-{index}" for index in held.indices]
        for mark in marks:
            mark.touch(exist_ok=False)
        for _ in range(source.randrange(100)):
            time.sleep(0)
        for mark in marks:
            mark.unlink()
        held.release()


def test_processes_that_take_several_slots_do_not_block_each_other(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    numbers = (1, 2, 3, 3, 4)
    together = context.Barrier(len(numbers))
    takers = [
        context.Process(target=_take_often, args=(tmp_path, number, number, 60, together))
        for number in numbers
    ]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
        assert taker.exitcode == 0
    assert Slots(tmp_path, 4).count_free() == 4


@pytest.mark.parametrize(
    ("chosen", "slots", "gpus", "found"),
    [
        ((0, 2), 4, (4, 5, 6, 7), (4, 6)),
        ((0, 1), 2, (4, 5, 6, 7), (4, 6, 5, 7)),
        ((0, 2), 4, (0, 1), (0,)),
        ((0, 1, 2), 4, (0, 1), (0, 1)),
        ((0, 1), 2, (), ()),
    ],
)
def test_several_slots_have_the_gpus_of_each(chosen, slots, gpus, found):
    assert gpus_of_slots(chosen, slots, gpus) == found


@pytest.mark.parametrize("gpus", range(1, 7))
@pytest.mark.parametrize("slots", range(1, 7))
def test_any_slots_of_the_number_that_is_assigned_have_the_gpus_of_a_job(slots: int, gpus: int):
    offer = WorkerOffer(
        worker_id="w",
        free_slots=slots,
        slots=slots,
        gpus=gpus,
        versions=frozenset({1}),
        takes_several_slots=True,
    )
    for needed in range(1, gpus + 1):
        number = offer.count_slots(needed)
        for chosen in combinations(range(slots), number):
            assert len(gpus_of_slots(chosen, slots, tuple(range(gpus)))) >= needed
