"""Plain loops, one file per family of algorithms.

They use torch modules with an optimizer of `torch.optim`, and numpy arrays for storage.
"""

from benchmarks._peers import plain_dqn, plain_on_policy, plain_sac
from benchmarks._peers.loops import Loop
from benchmarks._peers.tasks import DqnSettings, SacSettings, Task


def build(task: Task, seed: int, env_steps: int) -> Loop:
    match task.settings:
        case DqnSettings():
            return plain_dqn.build(task, task.settings, seed, env_steps)
        case SacSettings():
            return plain_sac.build(task, task.settings, seed, env_steps)
        case settings:
            return plain_on_policy.build(task, settings, seed, env_steps)
