"""Sends points of many attempts at a fixed rate, in a process of its own."""

import asyncio
import json
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Event

from benchmarks._streams.content import Training
from palestra.contract.answers import CONTRACT_HEADER, CONTRACT_VERSION

SERIES = 5


def run(port: int, trainings: Sequence[Training], rate: float, stop: Event) -> None:
    """Sends `rate` batches a second of each training until `stop` is set."""
    asyncio.run(_send_all(port, trainings, rate, stop))


async def _send_all(port: int, trainings: Sequence[Training], rate: float, stop: Event) -> None:
    spread = 1 / rate / len(trainings)
    await asyncio.gather(
        *(_send(port, one, 1 / rate, place * spread, stop) for place, one in enumerate(trainings))
    )


async def _send(port: int, training: Training, period: float, delay: float, stop: Event) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /api/v1/attempts/{training.attempt_id}/telemetry HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {training.token}\r\nContent-Type: application/json\r\n"
        f"{CONTRACT_HEADER}: {CONTRACT_VERSION}\r\n"
        "Content-Length: {}\r\n\r\n"
    )
    due, step = time.monotonic() + delay, 0
    while not stop.is_set():
        due += period
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        step += 1
        body = _encode_batch(training.run_id, step)
        writer.write(head.format(len(body)).encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        lines = answer.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        content = await reader.readexactly(length)
        assert answer.startswith(b"HTTP/1.1 200"), answer + content
    writer.close()


def _encode_batch(run_id: str, step: int) -> bytes:
    now = time.time()
    records = [
        {
            "type": "points",
            "run": run_id,
            "series": f"loss/{number}",
            "env_step": [64 * step],
            "update": [step],
            "episode": [step // 7],
            "wall": [now],
            "value": [1.0 / (step + number)],
        }
        for number in range(SERIES)
    ]
    first_seq = 1 + SERIES * (step - 1)
    return json.dumps({"first_seq": first_seq, "records": records}).encode()
