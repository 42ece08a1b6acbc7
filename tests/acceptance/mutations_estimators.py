"""Mutations of estimators and agents: rows A1 to A22."""

from typing import Final

_ACT: Final = "workers/estimators/agent_learner.py"
_AGENTS: Final = "workers/estimators/agents.py"
_BASE: Final = "workers/estimators/model_owner.py"
_DECAYS: Final = "workers/supervised/rate_decays.py"
_EXPLORE: Final = "workers/supervised/explorations.py"
_MEMORIES: Final = "workers/estimators/memories.py"
_MODEL: Final = "workers/supervised/model_function.py"
_SESSION: Final = "workers/supervised/run_session.py"
_VARIABLES: Final = "workers/supervised/variables.py"

ESTIMATORS: Final = (
    (
        "A1",
        "the directory is made at once",
        _BASE,
        "self._params = None if params",
        "Path(self.model_dir).mkdir(); self._params = None if params",
    ),
    ("A2", "unknown arguments pass", _MODEL, "    if unknown:", "    if False:"),
    ("A3", "any memory", _AGENTS, "if not isinstance(memory, self.memory_type):", "if False:"),
    (
        "A4",
        "the exploration begins anew",
        _EXPLORE,
        'load_generator_state(self.generator, state["generator"])',
        "del state",
    ),
    (
        "A4",
        "the memory begins anew",
        _MEMORIES,
        '        load_generator_state(self._generator, state["generator"])',
        "",
    ),
    (
        "A5",
        "checkpoints by another cadence",
        _AGENTS,
        "save_steps=config.save_checkpoints_steps",
        "save_steps=3",
    ),
    ("A6", "the caller's params", _MODEL, "deepcopy(self._params)", "self._params"),
    (
        "A7",
        "anything is an environment",
        "workers/estimators/environments.py",
        "if not isinstance(env, gym.Env):",
        "if False:",
    ),
    (
        "A8",
        "a batch that never fits",
        _AGENTS,
        "if first_update < 0 or first_update < self.memory.batch_size:",
        "if first_update < 0:",
    ),
    (
        "A9",
        "no update at the ends",
        _AGENTS,
        "first_update + 1,\n            learns_at_episode_end=True",
        "first_update + 1,\n            learns_at_episode_end=False",
    ),
    (
        "A10",
        "steps are absolute",
        _AGENTS,
        "StopAtStepHook(num_steps=steps)",
        "StopAtStepHook(last_step=steps)",
    ),
    (
        "A11",
        "the bound is exceeded",
        _AGENTS,
        "ModelBudget(max_steps, max_episodes), steps=steps",
        "ModelBudget(max_steps and max_steps + 1, max_episodes), steps=steps",
    ),
    (
        "A12",
        "episodes are absolute",
        _AGENTS,
        "StopAtEpisodeHook(num_episodes=episodes)",
        "StopAtEpisodeHook(last_episode=episodes)",
    ),
    (
        "A13",
        "the bound on episodes is lost",
        _AGENTS,
        "ModelBudget(max_steps, max_episodes), steps=steps",
        "ModelBudget(max_steps or 30, None), steps=steps",
    ),
    (
        "A14",
        "hooks after the run only",
        _SESSION,
        "            hook.before_run(context)",
        "            pass",
    ),
    (
        "A15",
        "nothing is returned",
        _AGENTS,
        "reason=session.reason.value\n        )\n        return self",
        "reason=session.reason.value\n        )\n        return None",
    ),
    (
        "A16",
        "an update at first_update",
        _AGENTS,
        "warmup_env_steps=first_update + 1",
        "warmup_env_steps=first_update",
    ),
    ("A17", "hooks at every step", _ACT, "or not self.options.no_run_hooks)", "or True)"),
    (
        "A18",
        "actions are counted twice",
        _ACT,
        "self._variables.global_timestep += 1",
        "self._variables.global_timestep += 2",
    ),
    (
        "A19",
        "exploration follows updates",
        _VARIABLES,
        "discrete(greedy, actions, self.global_timestep)",
        "discrete(greedy, actions, self.global_step)",
    ),
    (
        "A20",
        "the least reward is the first",
        _ACT,
        "self.least = min(self.least, reward)",
        "self.least = reward",
    ),
    (
        "A21",
        "the newest is dropped",
        _MEMORIES,
        "np.asarray(indices) + ring.total - len(ring)",
        "np.asarray(indices)",
    ),
    (
        "A22",
        "natural decay with the wrong sign",
        _DECAYS,
        "math.exp(-decay.decay_rate",
        "math.exp(decay.decay_rate",
    ),
    (
        "A22",
        "noise that does not return",
        _EXPLORE,
        "self._theta * (self._mu - at)",
        "self._theta * (self._mu + at)",
    ),
)
