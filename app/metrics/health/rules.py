"""The rules. Each returns a finding, or `None` where the run is healthy or the data is too little.

A rule whose series a run does not have says nothing.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from app.metrics.health.records import Finding, TrainingRecord

VALUES: Final = ("q/mean", "value/mean")
"""Series of value estimates."""
WINDOW: Final = 10
"""Evaluations that are averaged, and that a fall has to last."""
RETURNS: Final = "episode/return"
"""Returns of training episodes."""
_LEARNING: Final = ("loss/", "q/", "value/", "policy/", "gradient/")
_VALUE_MARGIN: Final = 1.5
_MIN_POINTS: Final = 5
_CLIP_FRACTION: Final = 0.5
_KL: Final = 0.2
_CLIP_FACTOR: Final = 2_000.0
_EXPLAINED: Final = -0.1
_ACCURATE: Final = 0.25
_COLLAPSE: Final = 0.02
_IDLE_PERCENT: Final = 5.0
_MIN_STEPS: Final = 10_000
_UNLIMITED_STEPS: Final = 3_000


def check_values(record: TrainingRecord) -> Finding | None:
    """Value estimates above what the rewards allow.

    No discounted return exceeds the largest |reward| / (1 - gamma), the sum of the geometric
    series; where gamma is 1 the episode limit takes the place of 1 / (1 - gamma). Estimates far
    above are overestimation or divergence (van Hasselt et al. 2018, "Deep Reinforcement Learning
    and the Deadly Triad", who call values beyond this bound at any time of a training soft
    divergence). The largest mean over a tenth of the training within its last half counts:
    diverging values may oscillate, and a training that has recovered has no finding any more. Half
    as much again is allowed. With an entropy bonus the bound does not hold, so nothing is said.

    Series: `q/mean` or `value/mean`, and `reward/largest`.
    """
    rewards = record.series.get("reward/largest")
    name = next((one for one in VALUES if one in record.series), None)
    if rewards is None or name is None or record.gamma is None or record.entropy_bonus:
        return None
    horizon = record.max_episode_steps if record.gamma >= 1 else 1 / (1 - record.gamma)
    finite = np.isfinite(record.series[name].mean)
    values = np.abs(record.series[name].mean[finite])
    largest = _maximum(rewards.max)
    if horizon is None or largest <= 0 or len(values) < _MIN_POINTS:
        return None
    width, half = max(1, round(0.1 * len(values))), len(values) // 2
    means = np.lib.stride_tricks.sliding_window_view(values[half:], width).mean(axis=1)
    peak = int(np.argmax(means))
    value, bound = float(means[peak]), largest * horizon
    if value <= _VALUE_MARGIN * bound:
        return None
    step = int(record.series[name].env_step[finite][half + peak + width - 1])
    return Finding(
        "values_above_rewards",
        f"{name} reached {value:.4g} around {step} env_steps, but rewards of at most "
        f"{largest:.4g} allow {bound:.4g}.",
        "Lower the learning rate, update the target network less often, or use double Q-learning.",
        name,
        step,
    )


def check_entropy(record: TrainingRecord) -> Finding | None:
    """The entropy of the policy collapsed: it acts without exploring.

    The entropy over the last tenth of the training is below 2 % of its first value: Ahmed et al.
    2019, "Understanding the Impact of Entropy on Policy Optimization". Differential entropy, which
    may be negative, has no such floor and is not judged.

    Series: `policy/entropy`.
    """
    entropy = record.series.get("policy/entropy")
    if entropy is None or len(entropy.mean) < _MIN_POINTS or _minimum(entropy.min) < 0:
        return None
    first, last = float(entropy.mean[0]), float(entropy.last(0.1).mean())
    if not first > 0 or last >= _COLLAPSE * first:
        return None
    return Finding(
        "entropy_collapsed",
        f"policy/entropy fell from {first:.4g} to {last:.4g}: the policy no longer explores.",
        "Raise the entropy coefficient or lower the learning rate.",
        "policy/entropy",
        int(entropy.env_step[-1]),
    )


def check_explained_variance(record: TrainingRecord) -> Finding | None:
    """Explained variance below 0: the value function is worse than a constant.

    1 - Var(return - value) / Var(return), as OpenAI Baselines reports it; 0 is the constant mean.
    The median of the last quarter counts: early values are untrained, and returns of one rollout
    may hardly vary, so a single value can be far below 0. It has to be below -0.1, since a baseline
    that learns slowly stays around 0. Where errors are below a quarter of the values there is
    little to explain: all episodes of a solved task have the same return.

    Series: `value/explained_variance`; `loss/value` and `value/mean` where they are recorded.
    """
    found = record.series.get("value/explained_variance")
    if found is None or len(found.mean) < 4 * _MIN_POINTS:
        return None
    last = found.last(0.25)
    explained = float(np.median(last)) if len(last) else 0.0
    if explained >= _EXPLAINED or _are_values_accurate(record):
        return None
    return Finding(
        "explained_variance_negative",
        f"value/explained_variance is {explained:.3g}: the value function predicts worse "
        "than a constant.",
        "Raise the value coefficient or the number of passes, or normalise rewards.",
        "value/explained_variance",
        int(found.env_step[-1]),
    )


def check_policy_steps(record: TrainingRecord) -> Finding | None:
    """Updates of the policy too large: clip fraction above 0.5, or KL above 0.2.

    Schulman et al. 2017 clip so that few ratios leave the range, and stop at a KL of 0.01 to 0.03;
    Andrychowicz et al. 2021 see the best policies below a clip fraction of 0.3. The last quarter of
    the training counts.

    Series: `policy/clip_fraction`, `policy/kl`.
    """
    for name, limit in (("policy/clip_fraction", _CLIP_FRACTION), ("policy/kl", _KL)):
        found = record.series.get(name)
        if found is None or len(found.mean) < _MIN_POINTS:
            continue
        last = float(found.last(0.25).mean()) if len(found.last(0.25)) else 0.0
        if last > limit:
            return Finding(
                "policy_steps_too_large",
                f"{name} is {last:.3g}, above {limit}: each update changes the policy too much.",
                "Lower the learning rate or the number of passes, or set target_kl.",
                name,
                int(found.env_step[-1]),
            )
    return None


def check_gradients(record: TrainingRecord) -> Finding | None:
    """Gradients far above the clip all the time: the step size is set by the clip alone.

    Norms above the clip are usual, and Adam takes no notice of a common factor: REINFORCE solves
    CartPole at 480 times its clip. Norms that stay above 2,000 times the clip over the last half
    of the training mean that only the direction is left (Pascanu et al. 2013).

    Series: `gradient/norm`, the norm before clipping.
    """
    found = record.series.get("gradient/norm")
    if found is None or record.max_grad_norm is None or len(found.mean) < 2 * _MIN_POINTS:
        return None
    least = _minimum(found.last(0.5))
    if least <= _CLIP_FACTOR * record.max_grad_norm:
        return None
    return Finding(
        "gradients_clipped",
        f"gradient/norm stays above {least:.4g}, {least / record.max_grad_norm:.3g} times the clip "
        f"at {record.max_grad_norm:.4g}.",
        "Scale rewards down or normalise them, lower the learning rate, or raise max_grad_norm.",
        "gradient/norm",
        int(found.env_step[-1]),
    )


def check_fall(record: TrainingRecord) -> Finding | None:
    """A return that fell from its best and stayed there.

    The best mean over 10 consecutive evaluations, less three times their spread, is above each of
    the last 10 evaluations. The spread is their sample standard deviation, but at least a
    tenth of the range of all evaluations, so that equal evaluations are not a spread of 0.

    Series: `evaluation/mean`.
    """
    finite = np.isfinite(record.evaluation_means)
    means, steps = record.evaluation_means[finite], record.evaluation_steps[finite]
    if len(means) < 2 * WINDOW:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(means[:-WINDOW], WINDOW)
    best = int(np.argmax(windows.mean(axis=1)))
    top = float(windows[best].mean())
    spread = max(float(windows[best].std(ddof=1)), 0.1 * float(np.ptp(means)))
    now = means[-WINDOW:]
    if spread == 0 or float(now.max()) >= top - 3 * spread:
        return None
    step = int(steps[best + WINDOW - 1])
    return Finding(
        "return_fell",
        f"The return fell from {top:.4g} around {step} env_steps to {float(now.mean()):.4g} and "
        f"stayed there for {WINDOW} evaluations.",
        "Lower the learning rate or let it decay, and use the best snapshot.",
        "evaluation/mean",
        step,
    )


def check_episodes(record: TrainingRecord) -> Finding | None:
    """No episode finished.

    Neither after 10,000 transitions nor after twice the episode limit in each environment, or
    3,000 transitions of each where no limit is stated (environments of Gymnasium usually have a
    limit of at most 1,000): the agent never sees an end, and there is no return to judge.

    Series: `episode/return`.
    """
    limit = record.max_episode_steps
    each = _UNLIMITED_STEPS if limit is None else 2 * limit
    steps = max(_MIN_STEPS, each * record.num_envs)
    if record.env_steps < steps or RETURNS in record.series:
        return None
    return Finding(
        "no_episode_finished",
        f"No episode finished in {record.env_steps} env_steps.",
        "Set max_episode_steps, or check when the environment terminates.",
        "",
        record.env_steps,
    )


def check_finite(record: TrainingRecord) -> Finding | None:
    """A loss, value, policy statistic, gradient or return that is not a finite number.

    Series: all of `loss/`, `q/`, `value/`, `policy/`, `gradient/`, and `episode/return`.
    """
    for name, found in sorted(record.series.items()):
        bad = np.flatnonzero(found.nonfinite)
        if len(bad) and (name.startswith(_LEARNING) or name == RETURNS):
            step = int(found.env_step[bad[0]])
            return Finding(
                "not_finite",
                f"{name} has {int(found.nonfinite.sum())} values that are not finite, the first "
                f"around {step} env_steps.",
                "Check the rewards of the environment."
                if name == RETURNS
                else "Lower the learning rate, clip gradients, or scale rewards down.",
                name,
                step,
            )
    return None


def check_evaluation(record: TrainingRecord) -> Finding | None:
    """Evaluation far below training.

    The mean of the last 5 evaluations is below that of the training episodes since the first of
    them by more than half of the return's range and three times the spread of those episodes'
    means: the evaluation environment differs, or the policy needs its exploration noise (Machado et
    al. 2018). Later episodes alone would be better than the earlier evaluations wherever the
    training still improves.

    Series: `evaluation/mean`, `episode/return`.
    """
    training = record.series.get(RETURNS)
    finite = np.isfinite(record.evaluation_means)
    means, steps = record.evaluation_means[finite], record.evaluation_steps[finite]
    if training is None or len(means) < _MIN_POINTS or len(training.mean) < 2 * WINDOW:
        return None
    recent = training.mean[(training.env_step >= steps[-_MIN_POINTS]) & np.isfinite(training.mean)]
    if len(recent) < 2:
        return None
    trained, evaluated = float(recent.mean()), float(means[-_MIN_POINTS:].mean())
    spread = float(recent.std(ddof=1))
    scale = _maximum(training.mean) - _minimum(training.mean)
    if trained - evaluated <= max(0.5 * scale, 3 * spread) or scale == 0:
        return None
    return Finding(
        "evaluation_below_training",
        f"Evaluations return {evaluated:.4g}, training episodes {trained:.4g}.",
        "Check that evaluation has the same wrappers and normalisers; compare actions drawn from "
        "the policy: `palestra evaluate RUN --policy both`.",
        "evaluation/mean",
        int(steps[-1]),
    )


def check_gpu(record: TrainingRecord) -> Finding | None:
    """The GPU idles while the environment steps: below 5 % over the last half of the training.

    Series: `system/gpu<index>_util_percent`, over the samples of the worker.
    """
    for name, found in sorted(record.series.items()):
        if name.startswith("system/gpu") and name.endswith("util_percent"):
            last = found.last(0.5)
            if len(found.mean) >= 2 * WINDOW and float(last.mean()) < _IDLE_PERCENT:
                return Finding(
                    "gpu_idle",
                    f"{name} is {float(last.mean()):.2g} on average: the environment is the "
                    "bottleneck.",
                    "Use more environments or several seeds as a pack, or train on the CPU.",
                    name,
                    int(found.env_step[-1]),
                )
    return None


RULES: Final[Sequence[Callable[[TrainingRecord], Finding | None]]] = (
    check_finite,
    check_values,
    check_fall,
    check_entropy,
    check_explained_variance,
    check_policy_steps,
    check_gradients,
    check_episodes,
    check_evaluation,
    check_gpu,
)
"""All rules, the gravest first."""


def find_faults(record: TrainingRecord) -> list[Finding]:
    """Returns the findings of all rules, the gravest first."""
    return [found for rule in RULES if (found := rule(record)) is not None]


def _are_values_accurate(record: TrainingRecord) -> bool:
    """Returns whether the root of the mean squared error is small beside the values."""
    loss, values = record.series.get("loss/value"), record.series.get("value/mean")
    if loss is None or values is None or not (len(loss.last(0.25)) and len(values.last(0.25))):
        return False
    error = float(np.sqrt(np.median(np.abs(loss.last(0.25)))))
    return error < _ACCURATE * abs(float(np.median(values.last(0.25))))


def _maximum(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else 0.0


def _minimum(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.min()) if len(finite) else 0.0


def list_series(names: Sequence[str]) -> list[str]:
    """Returns those of a run's series that the rules read."""
    return [
        name
        for name in names
        if name.startswith((*_LEARNING, "system/gpu")) or name in {"reward/largest", RETURNS}
    ]
