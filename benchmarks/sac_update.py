"""Microseconds per SAC update on one thread: Palestra's, eager and compiled, and torch modules'.

    python -m benchmarks.sac_update [--batch 256] [--hidden 256 256] [--observation 3] [--action 1]
        [--no-compile]

All variants run interleaved in one process and the median of the rounds is printed, in CPU time,
which other load affects little. Only the ratios can be compared between machines.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from gymnasium import spaces

from benchmarks._peers.plain_sac import SacLearner
from benchmarks._peers.tasks import SacSettings
from palestra.contract.agents import SacParameters
from workers.acceleration.update_runner import make_runner
from workers.core.types import AgentContext
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.sac import build
from workers.rl.agents.shells.replay_agent import ReplayAgent

ROUNDS = 9


def agent_of(hyper: SacParameters, inputs: int, outputs: int) -> ReplayAgent:
    observation, action = (
        spaces.Box(-1, 1, (inputs,), np.float32),
        spaces.Box(-1, 1, (outputs,), np.float32),
    )
    return build(hyper, AgentContext(observation, action, 1, 0))


def batch_of(size: int, inputs: int, outputs: int) -> ReplayBatch:
    observation, successor = torch.randn(2, size, inputs)
    noise = torch.randn(2, size, outputs)
    discount = 0.99 * (torch.rand(size) > 0.05).float()
    return ReplayBatch(
        observation,
        torch.rand(size, outputs) * 2 - 1,
        torch.randn(size),
        successor,
        discount,
        torch.ones(size),
        tuple(noise),
    )


def module_style(hyper: SacParameters, batch: ReplayBatch) -> Callable[[], object]:
    settings = SacSettings(
        batch=hyper.batch_size, hidden=hyper.hidden_sizes, learning_rate=hyper.learning_rate
    )
    learner = SacLearner(settings, batch.observation.shape[1], batch.action.shape[1])
    columns = [
        batch.observation,
        batch.action,
        batch.reward,
        batch.next_observation,
        (batch.discount == 0).float(),
    ]
    return lambda: learner.update(columns)


def pure_style(hyper: SacParameters, batch: ReplayBatch, *, compiled: bool) -> Callable[[], object]:
    agent = agent_of(hyper, batch.observation.shape[1], batch.action.shape[1])
    update, state = (
        make_runner(agent.algorithm.update, mode="compiled" if compiled else "eager"),
        [agent.learning_state],
    )

    def step() -> None:
        state[0] = update(state[0], batch).state

    return step


def build_arithmetic(hyper: SacParameters) -> Callable[[], object]:
    """Returns a function that computes the sixteen products of the widest layer alone.

    Forward: the policy on s' and on s, both target critics, both critics on the actions taken and
    on the policy's. Backward: two for each critic and for the policy, and one for each critic where
    only the gradient with respect to the action is needed.
    """
    width, left = hyper.hidden_sizes[-1], torch.randn(hyper.batch_size, hyper.hidden_sizes[0])
    right = torch.randn(hyper.hidden_sizes[0], width)
    return lambda: [left @ right for _ in range(16)]


def microseconds(step: Callable[[], object], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        step()
    return (time.process_time() - begin) / calls * 1e6


def measure(styles: dict[str, Callable[[], object]], calls: int) -> dict[str, float]:
    for name, step in styles.items():
        begin = time.perf_counter()
        step()
        print(f"first call   {name:32s} {time.perf_counter() - begin:8.2f} s")
        microseconds(step, 5)
    rounds = [
        {name: microseconds(step, calls) for name, step in styles.items()} for _ in range(ROUNDS)
    ]
    return {name: statistics.median(one[name] for one in rounds) for name in styles}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--observation", type=int, default=3, help="numbers in an observation")
    parser.add_argument("--action", type=int, default=1, help="numbers in an action")
    parser.add_argument("--calls", type=int, default=30, help="updates per round")
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    hyper = SacParameters(
        batch_size=options.batch, hidden_sizes=tuple(options.hidden), learning_rate=1e-3
    )
    batch = batch_of(options.batch, options.observation, options.action)
    styles = {
        "modules + Adam": module_style(hyper, batch),
        "pure function, eager": pure_style(hyper, batch, compiled=False),
    }
    if not options.no_compile:
        styles["pure function, compiled"] = pure_style(hyper, batch, compiled=True)
    medians = measure(
        {**styles, "widest layer's products alone": build_arithmetic(hyper)}, options.calls
    )
    reference = medians["modules + Adam"]
    for name, median in medians.items():
        print(
            f"per update   {name:32s} {median:8.0f} us   {1e6 / median:6.0f} per second  "
            f" {reference / median:5.2f} x modules"
        )


if __name__ == "__main__":
    main()
