"""The load generator of Aim, whose server is reached by its own library alone.

Runs with the interpreter of Aim's environment and imports nothing of Palestra:

    python benchmarks/_tracking/aim_load.py aim://127.0.0.1:53800 CLIENTS STEPS SERIES SECONDS

prints {"points": …, "seconds": …, "batches": [seconds of each]} once all is stored.
"""

import json
import sys
import threading
import time


def send(run, steps: int, series: int, until: float, times: list[float]) -> None:
    """Tracks batches until a time; the library sends them in the background."""
    number = 0
    while time.perf_counter() < until:
        began = time.perf_counter()
        for step in range(number * steps, (number + 1) * steps):
            run.track(
                {f"loss/{column}": 1.0 / (1 + step + column) for column in range(series)},
                step=64 * step,
            )
        times.append(time.perf_counter() - began)
        number += 1


def main() -> None:
    # Only the environment of Aim has it.
    from aim import Run

    repo = sys.argv[1]
    clients, steps, series = (int(one) for one in sys.argv[2:5])
    seconds = float(sys.argv[5])
    runs = [
        Run(repo=repo, system_tracking_interval=None, capture_terminal_logs=False)
        for _ in range(clients)
    ]
    times: list[float] = []
    began = time.perf_counter()
    threads = [
        threading.Thread(target=send, args=(run, steps, series, began + seconds, times))
        for run in runs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Closing waits until the queue of requests is empty.
    for run in runs:
        run.close()
    elapsed = time.perf_counter() - began
    answer = {"points": len(times) * steps * series, "seconds": elapsed, "batches": times}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
