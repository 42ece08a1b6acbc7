"""Training functions with the signatures and the order of events of `pfrl.experiments`.

Each calls the one engine. Faults of PFRL are corrected: a final evaluation always happens, and best
scores and records survive a resume; a batch trains no step beyond its budget and never evaluates on
the training environments; `<t>_...` directories are complete snapshots, from which `resume` is
bit-exact where the agent offers its state; SIGTERM saves a snapshot as Ctrl-C does.

Environments are those of Gymnasium. `done` of the agent's `observe` is `terminated`; `reset` is
`truncated`, the maximum length or the info `needs_reset`.
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
