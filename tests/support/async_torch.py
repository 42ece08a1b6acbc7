"""A torch agent for tests with several processes."""

from pathlib import Path
from typing import Any

import torch

from tests.support.async_fakes import TallyAgent


class CountingAgent(TallyAgent):
    """Adds 1 to its process's entry of a shared parameter for each training step.

    It does the same with the momentum of an optimiser.
    """

    shared_attributes: tuple[str, ...] = ("model", "optimizer")

    def __init__(self, index: int = 0) -> None:
        super().__init__(index=index)
        self.model = torch.nn.Linear(4, 1, bias=False)
        torch.nn.init.zeros_(self.model.weight)
        self.private = torch.nn.Linear(4, 1, bias=False)
        torch.nn.init.zeros_(self.private.weight)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0, momentum=0.9)
        self.optimizer.state[self.model.weight]["momentum_buffer"] = torch.zeros(1, 4)

    def observe(self, observation: Any, reward: float, done: bool, reset: bool) -> None:
        super().observe(observation, reward, done, reset)
        if self.training:
            with torch.no_grad():
                self.model.weight[0, self.index] += 1.0
                self.private.weight[0, self.index] += 1.0
                self.optimizer.state[self.model.weight]["momentum_buffer"][0, self.index] += 1.0

    def save(self, dirname: str) -> None:
        super().save(dirname)
        torch.save(self.model.state_dict(), Path(dirname) / "model.pt")

    def load(self, dirname: str) -> None:
        super().load(dirname)
        self.model.load_state_dict(torch.load(Path(dirname) / "model.pt", weights_only=True))

    def state_dict(self) -> dict[str, Any]:
        momentum = self.optimizer.state[self.model.weight]["momentum_buffer"]
        tensors = {
            "weight": self.model.weight.detach().clone(),
            "private": self.private.weight.detach().clone(),
            "momentum": momentum.clone(),
        }
        return {**super().state_dict(), **tensors}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        with torch.no_grad():
            self.model.weight.copy_(state["weight"])
            self.private.weight.copy_(state["private"])
        self.optimizer.state[self.model.weight]["momentum_buffer"] = state["momentum"].clone()


def make_counting(process_idx: int) -> CountingAgent:
    return CountingAgent(process_idx)
