"""Health of a training: the findings of the server about one run."""

from typing import Final

from palestra.contract.views import View

RULES: Final = (
    "not_finite",
    "values_above_rewards",
    "return_fell",
    "entropy_collapsed",
    "explained_variance_negative",
    "policy_steps_too_large",
    "gradients_clipped",
    "no_episode_finished",
    "evaluation_below_training",
    "gpu_idle",
)
"""Names of the rules, the gravest first."""


class FindingView(View):
    """One sentence on what is wrong with a training, and what to try."""

    rule: str
    """Name of the rule, for example `values_above_rewards`."""
    sentence: str
    """What is wrong, with the number."""
    remedy: str
    series: str
    """Series that shows it."""
    env_step: int
    """Where it shows."""


class HealthView(View):
    """What the rules found in the curves and evaluations of a run so far."""

    run_id: str
    findings: list[FindingView]
    """The gravest first; empty for a run that looks healthy."""
    series: list[str]
    """Series that the rules could read: a rule whose series are missing says nothing."""
