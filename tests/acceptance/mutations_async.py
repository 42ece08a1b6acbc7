"""Mutations of `train_agent_async`: rows P1 to P25."""

from typing import Final

_RUN: Final = "workers/entrypoints/async_training/coordinator.py"
_CHILD: Final = "workers/entrypoints/async_training/training_process.py"
_CALL: Final = "workers/entrypoints/async_training/async_call.py"
_PARTS: Final = "workers/entrypoints/async_training/process_parts.py"
_RECORDS: Final = "workers/entrypoints/async_training/async_records.py"
_SHARING: Final = "workers/entrypoints/async_training/shared_parts.py"

ASYNC: Final = (
    (
        "P1",
        "a process counts for itself",
        _SHARING,
        "self.env_steps = at = self._claim(env_steps)",
        "self.env_steps += env_steps\n        at = self._claim(env_steps)",
    ),
    (
        "P2",
        "a profile goes to the current directory",
        _CHILD,
        'profiler.dump_stats(settings.outdir / f"profile_{index}.prof")',
        'profiler.dump_stats(f"profile_{index}.prof")',
    ),
    (
        "P3",
        "no process will do",
        _CALL,
        '("processes", call.processes, 1)',
        '("processes", call.processes, 0)',
    ),
    (
        "P4",
        "no environment of its own for evaluation",
        _CHILD,
        "user.make_env(index, test=True)",
        "user.make_env(index, test=False)",
    ),
    ("P5", "profile does nothing", _CHILD, "    if not settings.profile:", "    if True:"),
    (
        "P6",
        "the overshoot is not reported",
        _RUN,
        "overshoot = max(0, env_steps - int(settings.steps))",
        "overshoot = 7",
    ),
    (
        "P7",
        "the multiple belongs to the step after it",
        _SHARING,
        "interval, last = self._interval, min(at,",
        "at, interval, last = at - 1, self._interval, min(at - 1,",
    ),
    (
        "P8",
        "an evaluation by steps counts more",
        "workers/entrypoints/functional_parts/evaluator.py",
        "steps=settings.n_steps)",
        "steps=settings.n_steps and settings.n_steps + 9)",
    ),
    (
        "P9",
        "one episode more",
        "workers/entrypoints/functional_parts/evaluator.py",
        "EvaluationBudget(episodes=settings.n_episodes,",
        "EvaluationBudget(episodes=settings.n_episodes and settings.n_episodes + 1,",
    ),
    (
        "P10",
        "the threshold is ignored",
        _RECORDS,
        "success_share(message.result, threshold)",
        "success_share(message.result, 0.0)",
    ),
    (
        "P11",
        "no limit in evaluation",
        _CHILD,
        "_single_vector(environments, settings.max_episode_len)",
        "_single_vector(environments, None)",
    ),
    ("P12", "counting begins at 0", _RUN, "count.value = call.step_offset", "count.value = 0"),
    (
        "P13",
        "another name",
        _PARTS,
        "            return SUCCESSFUL\n",
        '            return f"{env_steps}_{FINISH}"\n',
    ),
    (
        "P14",
        "another agent is trained",
        _RUN,
        "            return self._call.user.agent\n",
        "            return __import__('copy').deepcopy(self._call.user.agent)\n",
    ),
    (
        "P15",
        "every process is process 0",
        _CHILD,
        "else user.make_agent(index)",
        "else user.make_agent(0)",
    ),
    (
        "P16",
        "hooks are forgotten",
        _CHILD,
        "self._agent.wrapped, user.step_hooks, 1)",
        "self._agent.wrapped, (), 1)",
    ),
    (
        "P17",
        "hooks are not asked whether they work here",
        _CALL,
        '    check_support(call.user.evaluation_hooks, "train_agent_async", FUNCTION)\n',
        "",
    ),
    (
        "P18",
        "an equal mean is better",
        "workers/engine/parts.py",
        "if not score > (",
        "if not score >= (",
    ),
    (
        "P19",
        "no events",
        _RECORDS,
        "writes_events=call.tensorboard,",
        "writes_events=False,",
    ),
    (
        "P20",
        "evaluations are not logged",
        _RECORDS,
        (
            "                "
            "self._log.record_evaluation(message.clock, message.result, is_final=False)\n"
        ),
        "",
    ),
    (
        "P21",
        "seeds do nothing",
        _RUN,
        "task(seed, *shared)",
        "task(len(self._seeds), *shared)",
    ),
    (
        "P22",
        "only the caller looks at the event",
        _CALL,
        "return isinstance(event, synchronize.Event) and (",
        "return False and (",
    ),
    (
        "P23",
        "saved as if it were finished",
        _PARTS,
        "EXCEPT if self._end.is_aborted else FINISH",
        "FINISH",
    ),
    ("P24", "processes keep their own tensors", _CHILD, "        adopt(own, user.tensors)\n", ""),
    (
        "P25",
        "the error stays where it was",
        _RUN,
        "            raise watch.error\n",
        "            return\n",
    ),
)
