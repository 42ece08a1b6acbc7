"""Evaluates in a subprocess while training continues.

The subprocess builds a second agent and an evaluator and receives the training agent's state with
each request, so it evaluates the state at the time of the request, whatever updates were made
since. It ends with the `SubprocessEvaluator`, and with the trainer if the trainer is killed.
"""

import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch

from workers.core.errors import DefinitionError, WorkerError
from workers.core.protocols import ClockView, Stateful, TrainableAgent
from workers.core.subprocess_pool import Command, CommandFailure, Handler, Subprocess
from workers.core.types import EvaluationResult, PartFiles, StateTree

_CLOSE: Command = ()
"""Ends the process after its evaluator is closed."""
_TRIES = 2
"""Processes started for one evaluation before it counts as failed."""


class RemoteEvaluator(Protocol):
    """The evaluator that the subprocess builds, with a second agent."""

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation."""

    def close(self) -> None:
        """Closes the evaluator's environment."""


Build = Callable[[], tuple[TrainableAgent, RemoteEvaluator]]
"""Builds the agent and the evaluator in the subprocess; must be picklable, such as a
`functools.partial` of a module's function.
"""


class EvaluatorLostError(WorkerError):
    """The evaluating process ended without a result, and so did the process that replaced it."""

    is_retryable = True


class EvaluationRaisedError(WorkerError):
    """The evaluation raised an exception that cannot be pickled; the message quotes it."""


class _Tensor(NamedTuple):
    """A tensor sent as an array, so that no memory is shared with the training process."""

    array: Any


class SubprocessEvaluator:
    """Evaluates an agent's state in a subprocess; see `BackgroundEvaluator` of the protocols.

    Args:
        build: Called in the subprocess.
        agent: The agent whose state is evaluated.
    """

    def __init__(self, build: Build, agent: Stateful) -> None:
        self._build = build
        self._agent = agent
        self._process: Subprocess | None = None
        self._request: Command | None = None
        self._tries = 0
        self._status: int | None = None

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation and waits for its result."""
        self.begin(clock)
        result = self.take_result(wait=True)
        assert result is not None
        return result

    def begin(self, clock: ClockView) -> None:
        """Requests the evaluation of the agent's present state; returns at once.

        Args:
            clock: Counters of the training, which must not change any more.

        Raises:
            DefinitionError: If the agent keeps its state in files of its own.
        """
        self._request = (clock, _pack_tensors(self._agent.state_dict()))
        self._tries = 0
        self._send()

    def take_result(self, *, wait: bool) -> EvaluationResult | None:
        """Returns the result of the evaluation that `begin` requested; `None` if there is none yet.

        Raises:
            EvaluatorLostError: If the process died, and the process that replaced it too.
            EvaluationRaisedError: If the evaluation raised an exception that cannot be pickled.
            Exception: What the evaluation raised, with the traceback of the process as a note.
        """
        while self._request is not None and self._process is not None:
            try:
                if not (wait or self._process.pipe.poll()):
                    return None
                result = self._process.receive()
            except (EOFError, OSError):
                self._end_process()
                self._send()
                continue
            self._request = None
            return _unpack_result(result)
        return None

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None and self._request is None:
            with suppress(OSError):
                self._process.pipe.send(_CLOSE)
        self._request = None
        self._end_process()

    def _send(self) -> None:
        while self._tries < _TRIES:
            self._tries += 1
            self._process = self._process or Subprocess("evaluator", partial(_handler, self._build))
            try:
                self._process.pipe.send(self._request)
            except OSError:
                self._end_process()
            else:
                return
        self._request = None
        raise EvaluatorLostError(
            f"the evaluating process ended with status {self._status} instead of a result: "
            "perhaps for lack of memory"
        )

    def _end_process(self) -> None:
        """Ends the process if it is alive, and keeps its exit status."""
        if self._process is not None:
            self._process.pipe.close()
            self._process.join()
            self._status = self._process.process.exitcode
            self._process = None


def _handler(build: Build) -> Handler:
    """Returns the function that executes a `SubprocessEvaluator`'s commands in the subprocess."""
    torch.set_num_threads(1)
    agent, evaluator = build()

    def handle(command: Command) -> EvaluationResult:
        if command == _CLOSE:
            evaluator.close()
            raise SystemExit
        clock, state = command
        agent.load_state_dict(_unpack_tensors(state))
        return evaluator.evaluate(clock)

    return handle


def _unpack_result(result: EvaluationResult | CommandFailure) -> EvaluationResult:
    if not isinstance(result, CommandFailure):
        return result
    note = f"In the evaluating process:\n{result.traceback}"
    if result.error is None:
        raise EvaluationRaisedError(f"the evaluation raised {result.description}\n\n{note}")
    error: Exception = pickle.loads(result.error)  # noqa: S301 - pickled by our subprocess
    error.add_note(note)
    raise error


def _pack_tensors(value: object) -> object:
    if isinstance(value, dict):
        return {key: _pack_tensors(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_pack_tensors(item) for item in value]
    if isinstance(value, PartFiles):
        raise DefinitionError(
            "an agent that keeps files of its own cannot be evaluated in parallel: "
            "evaluate inline, or by continuous_eval"
        )
    return (
        _Tensor(value.detach().cpu().numpy().copy()) if isinstance(value, torch.Tensor) else value
    )


def _unpack_tensors(value: object) -> StateTree | Any:
    if isinstance(value, _Tensor):
        return torch.from_numpy(value.array)
    if isinstance(value, dict):
        return {key: _unpack_tensors(item) for key, item in value.items()}
    return [_unpack_tensors(item) for item in value] if isinstance(value, list) else value
