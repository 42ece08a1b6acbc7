"""Mutations of the serial and the batch training functions: rows P26 to P71."""

from typing import Final

_RUN: Final = "workers/entrypoints/functional_parts/training_call.py"
_ARGUMENTS: Final = "workers/entrypoints/functional_parts/training_arguments.py"
_SERIAL: Final = "workers/entrypoints/functional_parts/serial_training.py"
_BATCH: Final = "workers/entrypoints/functional_parts/batch_training.py"
_RECORDS: Final = "workers/entrypoints/functional_parts/evaluation_records.py"
_NAMED: Final = "workers/entrypoints/functional_parts/named_snapshots.py"
_AGENT: Final = "workers/rl/agents/pfrl_adapter.py"
_STEPS: Final = "workers/hooks/step_hooks.py"
_HOOKS: Final = "workers/hooks/evaluation_hooks.py"
_ENVS: Final = "workers/rl/envs/caller_envs.py"
_EPISODE: Final = "workers/rl/envs/resumable_episode.py"
_EVALUATE: Final = "workers/entrypoints/functional_parts/evaluator.py"
_EVALUATOR: Final = "workers/rl/evaluate/vector_evaluator.py"
_LOG: Final = "workers/entrypoints/functional_parts/log_recorder.py"
_SCORES: Final = "workers/entrypoints/functional_parts/scores_file.py"
_BOARD: Final = "workers/recording/tensorboard.py"

FUNCTIONAL: Final = (
    (
        "P26",
        "the budget ends late",
        _RUN,
        "Unit.ENV_STEPS: call.steps}",
        "Unit.ENV_STEPS: call.steps + 4}",
    ),
    (
        "P27",
        "a batch acts on one environment",
        _AGENT,
        "rows = self._newest(observation) if",
        "rows = self._newest(observation)[:1] if",
    ),
    (
        "P28",
        "the offset is not counted",
        _RUN,
        "engine.clock.env_steps = int(call.step_offset)",
        "engine.clock.env_steps = 0",
    ),
    (
        "P29",
        "everything goes elsewhere",
        _ARGUMENTS,
        "return Path(self.outdir)",
        "return Path(self.outdir).parent",
    ),
    ("P30", "checkpoints named by the clock", _NAMED, "self._multiples(t) or [t])", "[t])"),
    (
        "P31",
        "no line per interval",
        _LOG,
        "clock.env_steps >= self._next",
        "clock.env_steps > self._next + 10**6",
    ),
    (
        "P32",
        "no limit in training",
        _RUN,
        'as_vector(call.env, "env", call.max_episode_len)',
        'as_vector(call.env, "env")',
    ),
    (
        "P33",
        "agent.t is left alone",
        _RUN,
        "            self._agent.step = self._call.step_offset\n        elif",
        "            pass\n        elif",
    ),
    (
        "P34",
        "the evaluator is not asked after steps",
        _RECORDS,
        "if self._during_episode:",
        "if self._during_episode is None:",
    ),
    (
        "P35",
        "the caller's best score is not looked at",
        _RECORDS,
        "is_reached(self._successful_score, self._evaluator.max_score)",
        "False",
    ),
    (
        "P36",
        "one call per vector step",
        _STEPS,
        "range(last - self._num_envs + 1, last + 1)",
        "range(last, last + 1)",
    ),
    ("P37", "all episodes are averaged", _LOG, "deque(maxlen=window)", "deque(maxlen=None)"),
    (
        "P36",
        "hooks get the steps before",
        _STEPS,
        "range(last - self._num_envs + 1, last + 1)",
        "range(last - self._num_envs, last)",
    ),
    (
        "P38",
        "another logger",
        _RUN,
        "self._logger = call.logger or logging",
        "self._logger = logging",
    ),
    (
        "P39",
        "no step in the history",
        _RECORDS,
        '"step": clock.env_steps,\n            "training',
        '"training',
    ),
    (
        "P40",
        "the end is not evaluated",
        _RUN,
        "saves_best_separately=True,",
        "saves_best_separately=True,\n            has_final_evaluation=False,",
    ),
    (
        "P41",
        "both names are taken",
        "workers/entrypoints/functional_parts/parameter_aliases.py",
        "if given.get(name) is not None:",
        "if False:",
    ),
    (
        "P42",
        "half the interval",
        _RUN,
        "IntervalTrigger(call.evaluation.settings.interval)",
        "IntervalTrigger(call.evaluation.settings.interval // 2)",
    ),
    (
        "P43",
        "a parameter is changed on its way",
        _BATCH,
        (
            "max_episode_len=max_episode_len,\n            step_offset=step_offset,\n            "
            "evaluation="
        ),
        "max_episode_len=None,\n            step_offset=step_offset,\n            evaluation=",
    ),
    (
        "P44",
        "no fall back to the limit of training",
        _BATCH,
        "max_episode_len=max_episode_len if eval_max",
        "max_episode_len=9 if eval_max",
    ),
    (
        "P45",
        "evaluated on the training environments",
        _RUN,
        "own = copy_of(call.env)",
        "own = call.env",
    ),
    (
        "P46",
        "the score must be exceeded",
        _HOOKS,
        "score is not None and value >= score",
        "score is not None and value > score",
    ),
    ("P47", "any hook is taken", _ARGUMENTS, "check_support(call", "(lambda *_: None)(call"),
    (
        "P48",
        "an equal score is better",
        "workers/engine/parts.py",
        "if not score > (",
        "if not score >= (",
    ),
    (
        "P49",
        "the first episode by start order is not counted",
        _EVALUATOR,
        "slice(count or 1)",
        "slice(1, count or 1)",
    ),
    (
        "P50",
        "an episode that is cut off does not count",
        _RECORDS,
        "return clock.episodes + self.is_cut_off(clock)",
        "return clock.episodes",
    ),
    (
        "P51",
        "every episode has the same seed",
        "workers/rl/collect/vector_collector.py",
        "index, int(self._begun[slot]), bits",
        "index, 0, bits",
    ),
    (
        "P52",
        "both budgets are taken",
        _EVALUATE,
        "if (self.n_steps is None) == (self.n_episodes is None):",
        "if False:",
    ),
    (
        "P53",
        "evaluated at episode ends only",
        _RUN,
        "=evaluation,\n            evaluates_during_episode=call.evaluates_during_episode",
        "=evaluation,\n            evaluates_during_episode=False",
    ),
    ("P54", "old checkpoints stay", _NAMED, "shutil.rmtree(old, ignore_errors=True)", "pass"),
    (
        "P55",
        "a limit is a terminal state",
        _EPISODE,
        "self._last = (observation, over, cut)",
        "over = over or cut\n        self._last = (observation, over, cut)",
    ),
    ("P56", "evaluations ignore the offset", _RUN, "trigger.skip(engine.clock)", "pass"),
    (
        "P57",
        "evaluation has no limit of its own",
        _SERIAL,
        (
            "=train_max_episode_len\n        if eval_max_episode_len is None\n        else "
            "eval_max_episode_len"
        ),
        "=train_max_episode_len",
    ),
    (
        "P58",
        "a given eval_env is not used",
        _RUN,
        "evaluation.env is not None and evaluation.env is not call.env",
        "False",
    ),
    (
        "P59",
        "success ends nothing",
        _RUN,
        "SuccessScoreHook(call.successful_score)",
        "SuccessScoreHook(None)",
    ),
    (
        "P60",
        "hooks get the step before",
        _STEPS,
        "hook(self._env, self._agent, last)",
        "hook(self._env, self._agent, last - 1)",
    ),
    (
        "P61",
        "hooks come before the row",
        _RECORDS,
        "        outputs.scores.append({**agent, **env, **basic, **numbers})\n",
        "",
    ),
    (
        "P62",
        "an equal score is better",
        "workers/engine/parts.py",
        "if not score > (",
        "if not score >= (",
    ),
    (
        "P63",
        "statistics of the environment are not written",
        _BOARD,
        '            **{f"env/{name}": value for name, value in env.items()},\n',
        "",
    ),
    (
        "P64",
        "a shared environment is let be",
        _RUN,
        "            if call.evaluates_during_episode:\n",
        "            if False:\n",
    ),
    ("P65", "no line per episode", _RUN, "logs_episodes=not call.is_batch", "logs_episodes=False"),
    (
        "P66",
        "no statistics in the history",
        _RECORDS,
        "{**agent, **stats, **own}",
        "{**agent, **own}",
    ),
    ("P67", "a resume begins a new table", _SCORES, "        if before:\n", "        if False:\n"),
    (
        "P68",
        "SIGTERM is not heard",
        "workers/entrypoints/functional_parts/interrupts.py",
        "        self.terminated = True",
        "        self.terminated = False",
    ),
    (
        "P69",
        "only subclasses are hooks",
        _STEPS,
        "if not callable(hook):",
        "if not isinstance(hook, StepHook):",
    ),
    (
        "P70",
        "begins at step 0",
        _STEPS,
        "max(0, step - 1) / max(1, self.total_steps - 1)",
        "step / self.total_steps",
    ),
    (
        "P71",
        "an attribute that nobody reads is set",
        _STEPS,
        'group["lr"] = value',
        "optimizer.lr = value",
    ),
)
"""Row, description, file, the text to replace, which occurs once, and its replacement."""
