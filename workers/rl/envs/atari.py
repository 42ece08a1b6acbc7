"""Atari games of ale-py with the usual preprocessing.

There are two implementations with the same settings: Gymnasium's wrappers around a single game, and
ale-py's vector environment, which steps games in its own threads but reloads the ROM per seed.
Each reproduces its own episodes from their seeds; the same seed gives different episodes in the
two, because they scale screens and draw the number of no-op steps differently. Both pad the first
frame stacks of a game with frames of zeros. Neither clips rewards or ends episodes at a lost life:
see `workers.rl.envs.learner_rewards`.
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
"""Games whose reset uses the random generator of the sticky actions, so that a reset depends on all
earlier frames.
"""
_EPISODES_PER_SEED: Final = 64
"""Episodes that a game plays between two seedings.

Seeding reloads the ROM, about 90 ms. Restoring an episode takes one reset, about 5 ms, for each
reset since the seeding.
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
        registered: Gymnasium's registration of the game.
        spec: Preprocessing of its frames.
        kwargs: Arguments of the game.
        render_mode: Gymnasium's render mode, such as `rgb_array`.

    Raises:
        DefinitionError: If it is not a game of ale-py, or `kwargs` sets an argument that the
            preprocessing sets.
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
        _Game(game, sticky, steps_after_reset=spec.noop_max > 0),
        noop_max=spec.noop_max,
        frame_skip=spec.frame_skip,
        screen_size=spec.screen_size,
        grayscale_obs=spec.grayscale,
    )
    return FrameStackObservation(frames, spec.frame_stack, padding_type="zero")


def make_native_vector(
    registered: Registered,
    spec: AtariPreprocessing,
    kwargs: Mapping[str, JsonScalar],
    num_envs: int,
    limit: int | None,
    *,
    needs_seeded_episodes: bool = True,
) -> GymVector:
    """Returns ale-py's own vector environment.

    On one core it runs several times as many steps per second as the wrappers.

    Args:
        registered: Gymnasium's registration of the game.
        spec: Preprocessing of its frames.
        kwargs: Arguments of ale-py's vector environment.
        num_envs: Number of games.
        limit: Time limit in env_steps; `None` for none.
        needs_seeded_episodes: Whether each episode must depend on its seed alone. If not, games are
            seeded less often, see `_CountedResets`, except games with sticky actions.

    Raises:
        DefinitionError: If ale-py has no vector environment of the game.
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
    has_sticky_actions = bool({**registered.kwargs, **kwargs}.get(_STICKY))
    is_seeded = (
        needs_seeded_episodes
        or has_sticky_actions
        or registered.kwargs.get("game") in _DRAW_WHEN_RESET
    )
    return GymVector(
        _MaskedResets(vector) if is_seeded else _CountedResets(vector), limit, resets_itself=True
    )


class _Game(gym.Wrapper[Any, Any, Any, Any]):
    """Steps a game frame by frame, without observations: the preprocessing reads the screen.

    To seed a game, ale-py has to reload the ROM, which takes as long as several hundred steps, and
    it uses the seed only for sticky actions. This class therefore draws the sticky actions itself,
    before each frame and by the same rule (Machado et al. 2018, section 5.2), and a reset restores
    the emulator's first state.

    Args:
        game: The game, with one frame per step and without sticky actions.
        sticky: Probability that the previous action is repeated.
        steps_after_reset: Whether the caller takes a step after each reset before it reads the
            screen. Restoring the first state does not redraw the screen. Without that step, a reset
            resets the game instead, which redraws it and takes as long as thirty steps.
    """

    def __init__(self, game: Env, sticky: float, *, steps_after_reset: bool) -> None:
        super().__init__(game)
        inner: Any = game.unwrapped
        self._inner = inner
        self._ale = inner.ale
        legal = self._ale.getLegalActionSet()
        self._actions = tuple(
            legal if len(legal) == inner.action_space.n else self._ale.getMinimalActionSet()
        )
        self._sticky = sticky
        self._steps_after_reset = steps_after_reset
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
        if self._steps_after_reset:
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
    """A `gymnasium.Env` over ale-py's vector environment of one game, for recording videos.

    It renders the preprocessed frames that the agent observes.

    Args:
        vector: Vector environment of one game; owned.
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
        """Begins an episode and returns its first frame stack; `options` are ignored."""
        super().reset(seed=seed, options=options)
        self._frames = self._vector.begin(
            np.ones(1, np.bool_), [int(self.np_random.integers(2**31)) if seed is None else seed]
        )[0]
        return self._frames, {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, Info]:
        """Takes one env_step; the info is empty."""
        observation, reward, terminated, truncated = self._vector.advance(
            np.array([action], np.int64)
        )
        self._frames = observation[0]
        return self._frames, float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    def render(self) -> Any:
        """Returns the newest frame, enlarged fourfold, uint8 [height, width, 3]."""
        frame = self._frames[-1]
        coloured = frame if frame.ndim == 3 else np.repeat(frame[:, :, None], 3, axis=2)
        return coloured.repeat(_ENLARGED, axis=0).repeat(_ENLARGED, axis=1)

    def close(self) -> None:
        """Closes the vector."""
        self._vector.close()


class _MaskedResets(VectorWrapper[Any, Any, Any, Any]):
    """Adds Gymnasium's resets, by a mask and one seed per game, to ale-py's vector environment.

    ale-py's vector resets an ended game by itself in the next step, unless it was reset before.
    Games that it resets by itself run unobserved until the next reset by mask.
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


class _CountedResets(_MaskedResets):
    """Seeds each game once in 64 episodes, because seeding takes as long as about 18 resets.

    The first state of an episode is determined by the last seed and the number of resets since.
    That holds without sticky actions: a reset then draws from two generators, of the no-op frames
    and of the emulated hardware, and how many numbers it draws does not depend on the play.
    """

    def __init__(self, env: VecEnv) -> None:
        super().__init__(env)
        self._seeds = [0] * self.num_envs
        self._since = np.full(self.num_envs, _EPISODES_PER_SEED - 1)
        """Resets since the seed, int64 [B]."""
        self._over = np.zeros(self.num_envs, np.bool_)

    def origin(self, index: int) -> tuple[int, int]:
        """Returns the last seed of slot `index` and the number of resets since."""
        return self._seeds[index], int(self._since[index])

    def reset(self, *, seed: Any = None, options: ResetOptions | None = None) -> tuple[Any, Info]:
        """Resets the games in `options["reset_mask"]`, bool [B].

        With `since`, int64 [B], in the options, each game is seeded and then reset until `since`
        resets have followed its seed. This reproduces the beginning of an episode.
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
        """Steps all games; ale-py resets the games that had ended, which counts as a reset."""
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
