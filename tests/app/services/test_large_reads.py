"""Large tails and blocks are decoded in a thread, and read the same as small ones."""

import threading

import pytest

from app.metrics import blocks
from app.services.curves import stored_curves
from app.services.telemetry import compaction
from tests.app.services.telemetry_training import Training
from tests.support import records

POINTS = 5_000


@pytest.mark.parametrize("is_compacted", [False, True])
async def test_large_reads_leave_the_event_loop_free(
    training: Training, monkeypatch: pytest.MonkeyPatch, is_compacted: bool
) -> None:
    run = training.run_id
    values = [0.1 * step for step in range(POINTS)]
    await training.send(1, [records.make_points(run, "loss", range(POINTS), values)])
    if is_compacted:
        assert await compaction.compact_tail(training.database, run) == 1
    threads: list[threading.Thread] = []
    decode, add = blocks.decode_counter, stored_curves._add_tails

    def decode_noting_thread(content: bytes, axis: str) -> tuple[blocks.Ints, blocks.Floats]:
        threads.append(threading.current_thread())
        return decode(content, axis)

    def add_noting_thread(*arguments: object) -> None:
        threads.append(threading.current_thread())
        add(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(blocks, "decode_counter", decode_noting_thread)
    monkeypatch.setattr(stored_curves, "_add_tails", add_noting_thread)
    monkeypatch.setattr(stored_curves, "_MAX_BYTES_ON_LOOP", 0)
    async with training.database.read() as session:
        found = await stored_curves.load(session, [(run, "loss")], "env_step", {})
        (curve,) = found.values()
        await stored_curves.decode_blocks(session, [(curve, head) for head in curve.undecoded])
    _, read = curve.list_points()
    assert sorted(read.tolist()) == values
    expected = [one for one in threads if one is not threading.main_thread()]
    assert expected
    # Without a tail there is nothing to decode, so no thread is used.
    assert len(threads) - len(expected) == (1 if is_compacted else 0)
