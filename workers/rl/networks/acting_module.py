"""A greedy policy as a `torch.nn.Module` for export, without what training needs."""

from collections.abc import Callable

from torch import Tensor, nn

from workers.rl.networks.parameter_layout import Parameters


class ActingModule(nn.Module):
    """Maps observations [N, ...] to greedy actions [N, ...] with a copy of an agent's parameters.

    Args:
        parameters: Tensors by name; they are copied to the CPU.
        greedy: Pure function that returns greedy actions for parameters and observations.
    """

    def __init__(
        self, parameters: Parameters, greedy: Callable[[Parameters, Tensor], Tensor]
    ) -> None:
        super().__init__()
        self._greedy = greedy
        self._names = {name: name.replace(".", "_") for name in parameters}
        for name, key in self._names.items():
            self.register_buffer(key, parameters[name].detach().to("cpu", copy=True))
        self.eval()

    def forward(self, observation: Tensor) -> Tensor:
        return self._greedy(
            {name: self.get_buffer(key) for name, key in self._names.items()}, observation
        )
