"""Time from the logging of a number in the training loop to its arrival in a browser.

Chromium loads the dashboard's origin and tails the event stream with `fetch`, as the dashboard
does, on the machine that trains. The wall time of each point in the loop is compared with the
browser's clock at its arrival.

    python -m benchmarks.live_latency [--seconds 20] [--runs 1]
"""

import argparse
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks._report import describe_machine, show
from tests.e2e.chromium import QUIET, find_chromium
from tests.e2e.run_history import make_cartpole_definition
from tests.support.process_stack import Stack

TAIL = """
async ([cursor, seconds]) => {
  const latencies = [];
  const end = Date.now() + seconds * 1000;
  const abort = new AbortController();
  const url = `/api/v1/events?after=${cursor}&type=points`;
  const reader = (await fetch(url, { signal: abort.signal })).body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  setTimeout(() => abort.abort(), seconds * 1000);
  try {
    while (Date.now() < end) {
      const { value, done } = await reader.read();
      if (done) break;
      const now = Date.now() / 1000;
      rest += decoder.decode(value, { stream: true });
      const messages = rest.split("\\n\\n");
      rest = messages.pop();
      for (const message of messages) {
        const lines = message.split("\\n").filter((line) => line.startsWith("data:"));
        const data = lines.map((line) => line.slice(5)).join("\\n");
        if (!data) continue;
        const event = JSON.parse(data);
        for (const series of event.data?.series ?? [])
          if (!series.name.startsWith("system/"))
            for (const wall of series.wall) latencies.push(now - wall);
      }
    }
  } catch (error) { if (error.name !== "AbortError") throw error; }
  return latencies;
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        Stack(Path(directory)) as stack,
    ):
        latencies = _measure(stack, arguments.seconds, arguments.runs)
    print(describe_machine())
    in_time = show("log to browser", latencies, "s", bound=0.3)
    return 0 if show("log to browser", latencies, "s", bound=1, at=0.99) and in_time else 1


def _measure(stack: Stack, seconds: float, runs: int) -> list[float]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=QUIET)
        page = browser.new_page(base_url=stack.url)
        page.goto(stack.login_url)
        page.wait_for_url("**/")
        page.goto("/healthz")
        submitted = stack.submit(
            make_cartpole_definition(10_000_000, name="latency"), seeds=list(range(runs))
        )
        for run in submitted:
            stack.wait_for_run(
                run["id"],
                lambda run: run["progress"]["env_step"] > 500,
                "the run trains",
                patience_seconds=60,
            )
        time.sleep(2)
        cursor = stack.post("series:query", {"select": [], "buckets": 1})["cursor"]
        latencies: list[float] = page.evaluate(TAIL, [cursor, seconds])
        browser.close()
    return latencies


if __name__ == "__main__":
    raise SystemExit(main())
