"""Mutations of experiments and their schedules: rows R1 to R29 and E1 to E15."""

from typing import Final

_ACT: Final = "workers/estimators/agent_learner.py"
_AGENTS: Final = "workers/estimators/agents.py"
_EXPERIMENT_BASE: Final = "workers/entrypoints/experiment_parts/experiment_base.py"
_BATCHES: Final = "workers/supervised/batches.py"
_CHECKPOINTS: Final = "workers/estimators/checkpoints.py"
_CLUSTER: Final = "workers/estimators/cluster.py"
_CONFIG: Final = "workers/entrypoints/experiment_parts/documents.py"
_CONTINUOUS: Final = "workers/entrypoints/experiment_parts/continuous_evaluation.py"
_ESTIMATOR: Final = "workers/estimators/estimator.py"
_EVALUATION: Final = "workers/estimators/agent_evaluation.py"
_EXPERIMENT: Final = "workers/entrypoints/experiment_parts/supervised_experiment.py"
_EXPORTS: Final = "workers/estimators/export_strategies.py"
_INTERLEAVING: Final = "workers/entrypoints/experiment_parts/evaluate_checkpoints_hook.py"
_REGISTRY: Final = "workers/estimators/hook_registry.py"
_RL: Final = "workers/entrypoints/experiment_parts/rl_experiment.py"
_SCHEDULES: Final = "workers/entrypoints/experiment_parts/schedules.py"
_VARIABLES: Final = "workers/supervised/variables.py"

EXPERIMENTS: Final = (
    (
        "R1",
        "the environment is made at once",
        _RL,
        "self._env = env\n",
        "self._env = env() if not isinstance(env, gym.Env) else env\n",
    ),
    ("R2", "made environments stay open", _RL, "            if owned:", "            if False:"),
    (
        "R3",
        "one update too many",
        _SCHEDULES,
        "return self._train(hooks, max_steps=self.train_steps)",
        "return self._train(hooks, max_steps=self.train_steps and self.train_steps + 1)",
    ),
    (
        "R3",
        "the learner forgets the time",
        _VARIABLES,
        "setattr(self, name, int(state[name]))",
        "setattr(self, name, 0)",
    ),
    (
        "R4",
        "episodes without a bound",
        _RL,
        "max_episodes=self._train_episodes,",
        "max_episodes=self._train_episodes and self._train_episodes + 1,",
    ),
    (
        "R5",
        "updates one step early",
        _AGENTS,
        "warmup_env_steps=first_update + 1",
        "warmup_env_steps=first_update",
    ),
    (
        "R6",
        "multiples of the call before",
        "workers/estimators/agent_session.py",
        '{"next": following, "warmup_end"',
        '{"warmup_end"',
    ),
    (
        "R7",
        "one episode is missing",
        _AGENTS,
        "StopAfterNEvalsHook(steps)",
        "StopAfterNEvalsHook(max(1, steps - 1))",
    ),
    (
        "R8",
        "the caller's list",
        _EXPERIMENT_BASE,
        "self._train_hooks = list(options.train_hooks or ())",
        "self._train_hooks = options.train_hooks or []",
    ),
    (
        "R9",
        "no delay",
        _SCHEDULES,
        "self._sleep(self._options.eval_delay_secs if delay_secs is None else delay_secs)",
        "pass",
    ),
    (
        "R10",
        "the throttle counts from the end",
        _CONTINUOUS,
        "began + self.throttle - self.context.now()",
        "self.throttle",
    ),
    (
        "R11",
        "every checkpoint",
        _INTERLEAVING,
        "key.global_step - self._last >= self._every and",
        "",
    ),
    (
        "R12",
        "the task's number itself",
        _SCHEDULES,
        "math.log((config.task_id or 0) + 1)",
        "math.log((config.task_id or 0) + 2)",
    ),
    (
        "R13",
        "anything is a strategy",
        _EXPORTS,
        "if not isinstance(strategy, ExportStrategy):",
        "if False:",
    ),
    ("R14", "rounds of a fifth", _SCHEDULES, "max(1, bound // 10)", "max(1, bound // 5)"),
    (
        "R15",
        "the new ones are returned",
        _EXPERIMENT_BASE,
        "old, self._strategies = self._strategies, check",
        "self._strategies, old = (), checked",
    ),
    (
        "R16",
        "hooks for the other phase",
        _EXPERIMENT_BASE,
        "self._eval_hooks.extend(additional_hooks)",
        "self._train_hooks.extend(additional_hooks)",
    ),
    ("R17", "an explicit delay is ignored", _SCHEDULES, "elif delay_secs is None:", "else:"),
    (
        "R18",
        "evaluation explores",
        _ACT,
        "return self._to_space(options.estimator_spec(features, None, Modes.PREDICT))",
        (
            "return self._to_space(options.estimator_spec(features, None, Modes.PREDICT, "
            "exploring=True))"
        ),
    ),
    (
        "R19",
        "a training that ended is waited for",
        _CHECKPOINTS,
        "stop is not None and stop.completes_run)",
        "False)",
    ),
    (
        "R20",
        "the constructor's throttle",
        _SCHEDULES,
        "if throttle is None else throttle",
        "if True else throttle",
    ),
    (
        "R21",
        "always once only",
        _CONTINUOUS,
        "(self.evaluates_once and key == self._evaluated)",
        "key == self._evaluated",
    ),
    (
        "R22",
        "the predicate hears of old results",
        _CONTINUOUS,
        "            return {}\n        result = self.evaluate",
        "            return None\n        result = self.evaluate",
    ),
    ("R23", "seeds of its own", _EVALUATION, "if self._training_seeds:", "if False:"),
    (
        "R24",
        "no exports",
        _SCHEDULES,
        "return result, self._export(newest, result)",
        "return result, []",
    ),
    (
        "R25",
        "the last round overshoots",
        _SCHEDULES,
        "bound - step if bound is not None else size)",
        "size)",
    ),
    (
        "R26",
        "the predicate is asked after a round",
        _SCHEDULES,
        "while predicate is None or predicate(result):",
        "while result is None or predicate is None or predicate(result):",
    ),
    (
        "R27",
        "the server does not block",
        _CLUSTER,
        "while not self._stopped.wait(_POLL_SECONDS):",
        "while False:",
    ),
    (
        "R28",
        "the model's own directory",
        _EXPERIMENT_BASE,
        'model.copy_with_directory(directory) if hasattr(model, "copy_with_directory") else model',
        "model",
    ),
    (
        "R29",
        "unknown memories",
        _CONFIG,
        'find_part(part.name, MEMORIES, "memory")',
        "MEMORIES.get(part.name, Memory)",
    ),
    ("R29", "a hook is forgotten", _REGISTRY, "        EpisodeCounterHook,\n    )\n}", "    )\n}"),
    ("E1", "an agent is an estimator", _EXPERIMENT, ' or hasattr(estimator, "run_episode")', ""),
    (
        "E2",
        "no property",
        _EXPERIMENT,
        "    @property\n    def estimator(self) -> Any:",
        "    def estimator(self) -> Any:",
    ),
    (
        "E3",
        "means over batches",
        "workers/supervised/learner.py",
        "        count = rows_in(batch[0])",
        "        count = 1",
    ),
    (
        "E4",
        "the input begins again",
        _BATCHES,
        "        for drawn in range(self._drawn):",
        "        for drawn in range(0):",
    ),
    (
        "E5",
        "checkpoints evaluated too often",
        _INTERLEAVING,
        "key.global_step - self._last >= self._every and",
        "",
    ),
    (
        "E6",
        "hooks are forgotten",
        _EXPERIMENT_BASE,
        "self._train_hooks.extend(additional_hooks)",
        "pass",
    ),
    (
        "E7",
        "the server's start is not counted",
        _SCHEDULES,
        "self._sleep(began + delay_secs - self.context.now())",
        "self._sleep(delay_secs)",
    ),
    (
        "E8",
        "one series for all",
        _SCHEDULES,
        "return self._evaluate(ONE_PASS, self._eval_hooks)",
        "return self._evaluate(None, self._eval_hooks)",
    ),
    ("E9", "evaluated at each look", _CONTINUOUS, "        self._evaluated = key\n", ""),
    (
        "E10",
        "the evaluation's data",
        _EXPERIMENT,
        "self._train_input_fn if uses_train_data else self._eval_input_fn",
        "self._eval_input_fn",
    ),
    (
        "E11",
        "trained with an evaluation's draws",
        _ESTIMATOR,
        (
            "        with preserve_global_state():\n            seed_global(\n                "
            "derive_seed"
        ),
        "        if True:\n            seed_global(\n                derive_seed",
    ),
    (
        "E12",
        "rounds are absolute",
        _SCHEDULES,
        "steps=self._round(step)",
        "max_steps=self._round(step)",
    ),
    (
        "E13",
        "the server is not joined",
        _SCHEDULES,
        "            server.join()",
        "            pass",
    ),
    ("E14", "two steps", _SCHEDULES, "moved._train([], steps=1)", "moved._train([], steps=2)"),
    (
        "E15",
        "unknown keys pass",
        "palestra/contract/documents.py",
        'extra="forbid", strict=True',
        'extra="ignore", strict=True',
    ),
)
