"""Evaluates in a process of its own while training goes on.

The process builds an agent and an evaluator of its own and is sent the training agent's state: it
evaluates exactly the state at which it was asked, however far training has come meanwhile. Owns
that process. It ends with the evaluator, and with the trainer if that is killed.
"""

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

import torch

from workers.core.errors import DefinitionError, WorkerError
from workers.core.protocols import ClockView, Stateful, TrainableAgent
from workers.core.types import EvaluationResult, OwnFiles, StateTree

_PATIENCE = 5.0
_TRIES = 2
"""Processes started for one evaluation before it counts as failed."""


class OwnEvaluator(Protocol):
    """What the process builds: an evaluator of an agent of its own."""

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation."""
        ...

    def close(self) -> None:
        """Closes what it holds."""
        ...


Build = Callable[[], tuple[TrainableAgent, OwnEvaluator]]
"""Importable, with its arguments (`functools.partial`): it crosses to the process."""


class EvaluatorLostError(WorkerError):
    """The evaluating process ended without an answer, again after it was started anew."""

    retryable = True


class _Tensor(NamedTuple):
    """A tensor on its way: as an array, so that no memory is shared with the training."""

    array: Any


class SubprocessEvaluator:
    """Evaluates an agent's state elsewhere; see `BackgroundEvaluator` of the protocols.

    Args:
        build: Called in the process.
        agent: Its state is what is evaluated.
    """

    def __init__(self, build: Build, agent: Stateful) -> None:
        self._build = build
        self._agent = agent
        self._process: Any = None
        self._connection: Connection | None = None
        self._question: tuple[ClockView, Any] | None = None
        self._tries = 0
        self._status: int | None = None

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation and waits for it."""
        self.begin(clock)
        result = self.finished(wait=True)
        assert result is not None
        return result

    def begin(self, clock: ClockView) -> None:
        """Asks for the evaluation of the agent's present state; returns at once.

        Args:
            clock: Does not go on counting.

        Raises:
            DefinitionError: If the agent keeps its state in files of its own.
        """
        self._question = (clock, _packed(self._agent.state_dict()))
        self._tries = 0
        self._ask()

    def finished(self, *, wait: bool) -> EvaluationResult | None:
        """Returns the result of what was begun; `None` if it is not there yet.

        Raises:
            EvaluatorLostError: If the process died, and its successor too.
            Exception: What the evaluation raised, with the process's traceback as a note.
        """
        while self._question is not None:
            try:
                if self._connection is None or not (wait or self._connection.poll()):
                    return None
                answer = self._connection.recv()
            except (EOFError, OSError):
                self._drop()
                self._ask()
                continue
            self._question = None
            return _opened(answer)
        return None

    def close(self) -> None:
        """Ends the process."""
        self._question = None
        self._drop()

    def _ask(self) -> None:
        while self._tries < _TRIES:
            self._tries += 1
            try:
                connection = self._connection or self._start()
                connection.send(self._question)
            except OSError:
                self._drop()
            else:
                return
        self._question = None
        raise EvaluatorLostError(
            f"the evaluating process ended with status {self._status} instead of an answer: was it short of memory?"
        )

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._build), name="evaluator", daemon=True
        )
        self._process.start()
        theirs.close()
        return self._connection

    def _drop(self) -> None:
        """Ends the process, or what is left of it."""
        if self._connection is None:
            return
        self._connection.close()
        self._connection = None
        self._process.join(_PATIENCE)
        self._process.kill()
        self._process.join()
        self._status = self._process.exitcode


def _serve(connection: Connection, build: Build) -> None:
    """The process: answers until the trainer closes the connection or dies."""
    torch.set_num_threads(1)
    parts: tuple[TrainableAgent, OwnEvaluator] | None = None
    while True:
        try:
            clock, state = connection.recv()
        except EOFError:
            break
        try:
            parts = parts or build()
            agent, evaluator = parts
            agent.load_state_dict(_unpacked(state))
            answer: Any = evaluator.evaluate(clock)
        except Exception as error:  # noqa: BLE001 - the trainer raises it
            error.add_note(f"In the evaluating process:\n{traceback.format_exc()}")
            answer = error
        connection.send(answer)
    if parts is not None:
        parts[1].close()


def _opened(answer: EvaluationResult | Exception) -> EvaluationResult:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _packed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _packed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(item) for item in value]
    if isinstance(value, OwnFiles):
        raise DefinitionError(
            "an agent that keeps files of its own cannot be evaluated in parallel: evaluate inline, or by continuous_eval"
        )
    return (
        _Tensor(value.detach().cpu().numpy().copy()) if isinstance(value, torch.Tensor) else value
    )


def _unpacked(value: Any) -> StateTree | Any:
    if isinstance(value, _Tensor):
        return torch.from_numpy(value.array)
    if isinstance(value, dict):
        return {key: _unpacked(item) for key, item in value.items()}
    return [_unpacked(item) for item in value] if isinstance(value, list) else value
