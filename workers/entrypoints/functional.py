"""Training functions with the signatures and the order of events of `pfrl.experiments`.

All of them run `workers.engine.Engine`. Differences from PFRL: a final evaluation is always made;
best scores and records are kept on a resume; batch training ends at its budget and never evaluates
on the training environments; `<t>_...` directories are complete snapshots, from
which `resume` is bit-exact if the agent has `state_dict` and `load_state_dict`; SIGTERM saves a
snapshot, as Ctrl-C does.

Environments have the Gymnasium API. The agent's `observe` receives `terminated` as `done`; its
`reset` is set if the episode was truncated, reached the maximum length or set the info
`needs_reset`.
"""

from workers.entrypoints.async_training.async_records import read_history
from workers.entrypoints.async_training.train_agent_async import train_agent_async
from workers.entrypoints.functional_parts.batch_training import (
    train_agent_batch,
    train_agent_batch_with_evaluation,
)
from workers.entrypoints.functional_parts.serial_training import (
    train_agent,
    train_agent_with_evaluation,
)

__all__ = [
    "read_history",
    "train_agent",
    "train_agent_async",
    "train_agent_batch",
    "train_agent_batch_with_evaluation",
    "train_agent_with_evaluation",
]
