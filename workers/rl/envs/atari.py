"""Atari games of ale-py with the usual preprocessing.

Two ways with the same settings: Gymnasium's wrappers around one game, and the vector that ale-py
brings along, which works in threads of its own but loads the ROM anew for every seed. Each repeats
an episode from its seed, but not the other's: screens are scaled and idle starts drawn differently.
Both show frames of zeros before the first one of a game. Rewards are never clipped here, nor is a
lost life an end: see `workers.rl.envs.learner_rewards`.
"""

import os
from collections.abc import Mapping
from typing import Any, Final, cast

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec as Registered
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.wrappers import AtariPreprocessing as Preprocessed
from gymnasium.wrappers import FrameStackObservation

from palestra.contract.documents import JsonScalar
from palestra.contract.envs import AtariPreprocessing
from workers.core.errors import DefinitionError
from workers.core.types import Array
from workers.rl.envs.env_types import Env, Info, ResetOptions, VecEnv
from workers.rl.envs.gym_vector import GymVector

_TAKEN: Final = frozenset({"continuous", "frameskip", "obs_type"})
"""Arguments of the games that the preprocessing sets."""
_STICKY: Final = "repeat_action_probability"
_DRAW_WHEN_RESET: Final = frozenset({"adventure"})
"""Games whose reset draws from the numbers that sticky actions are drawn from, so that it depends
on all frames before.
"""
_EPISODES_PER_SEED: Final = 64
"""A seed costs a ROM, some 90 ms.

Finding back to an episode costs a reset of some 5 ms for each since the seed.
"""
_FRAMES_PER_SECOND: Final = 60
_ENLARGED: Final = 4


def make_game(
    registered: Registered,
    spec: AtariPreprocessing,
    kwargs: Mapping[str, JsonScalar],
    render_mode: str | None = None,
) -> Env:
    """Returns a game whose observations are stacked frames.

    They are uint8 [frame_stack, screen_size, screen_size(, 3)].

    Args:
        registered: The game.
        spec: Its preprocessing.
        kwargs: Arguments of the game.
        render_mode: `rgb_array` for pictures.

    Raises:
        DefinitionError: If it is not a game of ale-py, or `kwargs` says what the preprocessing
            says.
        gymnasium.error.DependencyNotInstalled: If there is no OpenCV.
    """
    _check_options(kwargs)
    if not str(registered.entry_point).startswith("ale_py"):
        raise DefinitionError(
            f"env.preprocessing: {registered.id} is not a game of ale-py, such as ALE/Pong-v5: "
            "leave preprocessing out"
        )
    sticky = float({**registered.kwargs, **kwargs}.get(_STICKY) or 0.0)
    options: dict[str, Any] = {
        **kwargs,
        _STICKY: 0.0,
        "frameskip": 1,
        "obs_type": "grayscale" if spec.grayscale else "rgb",
    }
    game: Env = gym.make(registered, **options, render_mode=render_mode, max_episode_steps=-1)
    frames = Preprocessed(
        _Game(game, sticky, redraws=spec.noop_max > 0),
        noop_max=spec.noop_max,
        frame_skip=spec.frame_skip,
        screen_size=spec.screen_size,
        grayscale_obs=spec.grayscale,
    )
    return FrameStackObservation(frames, spec.frame_stack, padding_type="zero")


def native_vector(
    registered: Registered,
    spec: AtariPreprocessing,
    kwargs: Mapping[str, JsonScalar],
    num_envs: int,
    limit: int | None,
    *,
    by_seed: bool = True,
) -> GymVector:
    """Returns ale-py's own vector environment.

    On one core it makes several times the steps per second of the wrappers.

    Args:
        registered: The game.
        spec: Its preprocessing.
        kwargs: Arguments of ale-py's vector.
        num_envs: Copies.
        limit: Time limit in env_steps.
        by_seed: Whether each episode follows from its seed alone; see `_CountedResets`. It does
            where actions are sticky, too.

    Raises:
        DefinitionError: If the game has no such vector.
    """
    _check_options(kwargs)
    if registered.vector_entry_point is None or "ale_py" not in str(registered.vector_entry_point):
        raise DefinitionError(
            f"env.vectorization: {registered.id} has no vector of its own; choose sync, or a game "
            "named ALE/...-v5"
        )
    options: dict[str, Any] = {
        **kwargs,
        "frameskip": spec.frame_skip,
        "img_height": spec.screen_size,
        "img_width": spec.screen_size,
        "grayscale": spec.grayscale,
        "stack_num": spec.frame_stack,
        "noop_max": spec.noop_max,
        "reward_clipping": False,
        "use_fire_reset": False,
        "num_threads": min(num_envs, len(os.sched_getaffinity(0))),
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    vector = gym.make_vec(registered, num_envs, vectorization_mode="vector_entry_point", **options)
    sticky = bool({**registered.kwargs, **kwargs}.get(_STICKY))
    seeded = by_seed or sticky or registered.kwargs.get("game") in _DRAW_WHEN_RESET
    return GymVector(
        _MaskedSeeds(vector) if seeded else _CountedResets(vector), limit, resets_itself=True
    )


class _Game(gym.Wrapper[Any, Any, Any, Any]):
    """A game frame by frame, without an observation: the preprocessing reads the screen.

    ale-py takes a seed only together with its ROM, for as long as several hundred steps, and uses
    it for sticky actions alone. So these are drawn here, before each frame and with the same rule
    (Machado et al. 2018, section 5.2), and a reset brings back the first state.

    Args:
        game: One frame per step, no sticky actions.
        sticky: Probability that the last action is taken again.
        redraws: Whether the caller takes a step after each reset, before it looks at the screen: a
            restored state does not draw it, a reset of the game does, for as long as thirty steps.
    """

    def __init__(self, game: Env, sticky: float, *, redraws: bool) -> None:
        super().__init__(game)
        inner: Any = game.unwrapped
        self._inner = inner
        self._ale = inner.ale
        legal = self._ale.getLegalActionSet()
        self._actions = tuple(
            legal if len(legal) == inner.action_space.n else self._ale.getMinimalActionSet()
        )
        self._sticky = sticky
        self._redraws = redraws
        self._last = 0
        self._ale.reset_game()
        self._start = self._ale.cloneState()

    def reset(
        self, *, seed: int | None = None, options: ResetOptions | None = None
    ) -> tuple[Any, Info]:
        del options
        if seed is not None:
            self._inner.np_random = np_random(seed)[0]
        self._last = 0
        if self._redraws:
            self._ale.restoreState(self._start)
        else:
            self._ale.reset_game()
        return None, {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, Info]:
        if not self._sticky or self._inner.np_random.random() >= self._sticky:
            self._last = action
        reward = self._ale.act(self._actions[self._last])
        return (
            None,
            float(reward),
            self._ale.game_over(with_truncation=False),
            self._ale.game_truncated(),
            {},
        )


class NativeGame(gym.Env[Array, int]):
    """One game of ale-py's vector, so that its episodes can be filmed.

    Its pictures are the frames that the agent sees.

    Args:
        vector: Of one copy; owned.
        frame_skip: Frames per env_step.
    """

    def __init__(self, vector: GymVector, frame_skip: int) -> None:
        self._vector = vector
        self._frames: Array = np.zeros(vector.single_observation_space.shape or (), np.uint8)
        self.observation_space: gym.Space[Any] = vector.single_observation_space
        self.action_space: gym.Space[Any] = vector.single_action_space
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": _FRAMES_PER_SECOND / frame_skip,
        }
        self.render_mode = "rgb_array"

    def reset(
        self, *, seed: int | None = None, options: ResetOptions | None = None
    ) -> tuple[Array, Info]:
        """Begins an episode."""
        super().reset(seed=seed, options=options)
        self._frames = self._vector.begin(
            np.ones(1, np.bool_), [int(self.np_random.integers(2**31)) if seed is None else seed]
        )[0]
        return self._frames, {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, Info]:
        """Steps on."""
        observation, reward, terminated, truncated = self._vector.advance(
            np.array([action], np.int64)
        )
        self._frames = observation[0]
        return self._frames, float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    def render(self) -> Any:
        """Returns the newest frame, enlarged, uint8 [height, width, 3]."""
        frame = self._frames[-1]
        coloured = frame if frame.ndim == 3 else np.repeat(frame[:, :, None], 3, axis=2)
        return coloured.repeat(_ENLARGED, axis=0).repeat(_ENLARGED, axis=1)

    def close(self) -> None:
        """Closes the vector."""
        self._vector.close()


class _MaskedSeeds(VectorWrapper[Any, Any, Any, Any]):
    """Resets ale-py's vector as Gymnasium's are: a seed for each copy, of which the mask chooses.

    The vector resets an ended game by itself in the next step; a reset before that takes its place,
    and nobody sees the idle games.
    """

    def __init__(self, env: VecEnv) -> None:
        super().__init__(env)
        self._begun = False

    def reset(
        self, *, seed: object = None, options: ResetOptions | None = None
    ) -> tuple[Any, Info]:
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, np.bool_))
        seeds = np.asarray(seed)
        if not self._begun:
            self._begun = True
            result = self.env.reset(seed=cast("Any", seeds))
            if mask.all():
                return result
        return self.env.reset(seed=cast("Any", seeds[mask]), options={"reset_mask": mask})


class _CountedResets(_MaskedSeeds):
    """Seeds a game for one episode in 64.

    That seed and the number of resets since determine where an episode begins.

    Without sticky actions a reset draws from two generators alone, that of the idle frames and that
    of the emulated hardware, the same numbers of numbers each time whatever was played. Seeding
    loads the ROM, which takes as long as some 18 resets.
    """

    def __init__(self, env: VecEnv) -> None:
        super().__init__(env)
        self._seeds = [0] * self.num_envs
        self._since = np.full(self.num_envs, _EPISODES_PER_SEED - 1)
        """Resets since the seed, int64 [B]."""
        self._over = np.zeros(self.num_envs, np.bool_)

    def origin(self, index: int) -> tuple[int, int]:
        """Returns the seed that a slot had last, and how many resets ago."""
        return self._seeds[index], int(self._since[index])

    def reset(self, *, seed: Any = None, options: ResetOptions | None = None) -> tuple[Any, Info]:
        """Resets games of a mask.

        With `since` int64 [B] in the options, to that number of resets after their seed.
        """
        options = options or {}
        mask, since = (
            options.get("reset_mask", np.ones(self.num_envs, np.bool_)),
            options.get("since"),
        )
        fresh = mask & (self._since + 1 >= _EPISODES_PER_SEED) if since is None else mask
        self._over[mask] = False
        if fresh.any():
            result = super().reset(seed=seed, options={"reset_mask": fresh})
            self._since[fresh] = 0
            for index in np.flatnonzero(fresh).tolist():
                self._seeds[index] = int(seed[index])
        more = mask & ~fresh if since is None else mask & (self._since < since)
        while more.any():
            result = self.env.reset(options={"reset_mask": more})
            self._since[more] += 1
            more = np.zeros_like(mask) if since is None else mask & (self._since < since)
        return result

    def step(self, actions: object) -> tuple[Any, Any, Any, Any, Info]:
        """Steps; the vector resets those that were over by itself."""
        self._since[self._over] += 1
        result = self.env.step(actions)
        self._over = np.asarray(result[2]) | np.asarray(result[3])
        return result


def _check_options(kwargs: Mapping[str, JsonScalar]) -> None:
    if taken := _TAKEN & set(kwargs):
        raise DefinitionError(
            f"env.kwargs.{min(taken)}: preprocessing sets it; use env.preprocessing, or leave one "
            "of them out"
        )
