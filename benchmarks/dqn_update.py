"""Microseconds per DQN update on one thread: Palestra's, eager and compiled, and a torch module's.

    python benchmarks/dqn_update.py [--batch 64] [--hidden 64 64] [--seeds 1 4 16] [--no-compile]

All variants run interleaved in one process and the median of the rounds is printed. Only the
ratios can be compared between machines.
"""

import argparse
import copy
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from palestra.contract.agents import DqnParameters
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import functional_gradient, make_runner
from workers.core.types import AgentContext
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.dqn import build
from workers.rl.agents.shells.replay_agent import ReplayAgent

ROUNDS = 11


def agent_of(hyper: DqnParameters, seed: int = 0) -> ReplayAgent:
    return build(
        hyper, AgentContext(spaces.Box(-1, 1, (4,), np.float32), spaces.Discrete(2), 8, seed)
    )


def batch_of(size: int) -> ReplayBatch:
    random = torch.randn(size, 4), torch.randint(2, (size,)), torch.ones(size), torch.randn(size, 4)
    return ReplayBatch(*random, 0.99 * (torch.rand(size) > 0.05).float(), torch.ones(size), ())


def module_style(hyper: DqnParameters, batch: ReplayBatch, *, fused: bool) -> Callable[[], object]:
    layers: list[nn.Module] = []
    sizes = (4, *hyper.hidden_sizes, 2)
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    online = nn.Sequential(*layers[:-1])
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=hyper.learning_rate, fused=fused)

    def update() -> None:
        with torch.no_grad():
            best = online(batch.next_observation).argmax(1, keepdim=True)
            bootstrap = target(batch.next_observation).gather(1, best).squeeze(1)
            wanted = batch.reward + batch.discount * bootstrap
        value = online(batch.observation).gather(1, batch.action.unsqueeze(1)).squeeze(1)
        loss = nn.functional.huber_loss(value, wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), hyper.max_grad_norm or 0.0)
        optimizer.step()

    return update


def stepper(update: Callable[..., Any], state: Any, batch: ReplayBatch) -> Callable[[], object]:
    held = [state]

    def step() -> None:
        held[0] = update(held[0], batch)[0]

    return step


def pure_style(hyper: DqnParameters, batch: ReplayBatch, *, compiled: bool) -> Callable[[], object]:
    agent = agent_of(hyper)
    update = make_runner(agent.algorithm.update, mode="compiled" if compiled else "eager")
    return stepper(update, agent.learning_state, batch)


def stacked_style(hyper: DqnParameters, batch: ReplayBatch, seeds: int) -> Callable[[], object]:
    agents = [agent_of(hyper, seed) for seed in range(seeds)]
    states = map_tensors(
        lambda *leaves: torch.stack(leaves), *(agent.learning_state for agent in agents)
    )
    algorithm = agents[0].algorithm
    update = torch.compile(
        torch.func.vmap(lambda *arguments: algorithm.update(functional_gradient, *arguments)),
        fullgraph=True,
    )
    return stepper(update, states, map_tensors(lambda leaf: torch.stack([leaf] * seeds), batch))


def microseconds(step: Callable[[], object], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        step()
    return (time.perf_counter() - begin) / calls * 1e6


def measure(styles: dict[str, Callable[[], object]], calls: int) -> dict[str, float]:
    for name, step in styles.items():
        begin = time.perf_counter()
        step()
        print(f"first call   {name:32s} {time.perf_counter() - begin:8.2f} s")
        microseconds(step, 20)
    rounds = [
        {name: microseconds(step, calls) for name, step in styles.items()} for _ in range(ROUNDS)
    ]
    return {name: statistics.median(one[name] for one in rounds) for name in styles}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--seeds", type=int, nargs="*", default=[4, 16])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hyper, batch = (
        DqnParameters(batch_size=options.batch, hidden_sizes=tuple(options.hidden)),
        batch_of(options.batch),
    )
    styles = {
        "module + Adam": module_style(hyper, batch, fused=False),
        "module + fused Adam": module_style(hyper, batch, fused=True),
        "pure function, eager": pure_style(hyper, batch, compiled=False),
    }
    stacks: dict[str, int] = {}
    if not options.no_compile:
        styles["pure function, compiled"] = pure_style(hyper, batch, compiled=True)
        stacks = {f"vmap over {seeds} seeds, compiled": seeds for seeds in options.seeds}
        styles.update({name: stacked_style(hyper, batch, seeds) for name, seeds in stacks.items()})
    medians = measure(styles, options.calls)
    reference = medians["module + Adam"]
    for name, median in medians.items():
        seeds = stacks.get(name, 1)
        print(
            f"per update   {name:32s} {median:8.0f} us   per seed {median / seeds:7.0f} "
            f"us   {reference * seeds / median:5.2f} x module"
        )


if __name__ == "__main__":
    main()
