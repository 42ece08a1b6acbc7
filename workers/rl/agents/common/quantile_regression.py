"""Targets and loss of the algorithms that learn quantiles of returns.

B samples of a batch, N quantiles at fractions tau_i of them, N' quantiles of the targets.
"""

import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from workers.rl.agents.common.algorithm import ReplayBatch


def quantile_targets(batch: ReplayBatch, following: Tensor) -> Tensor:
    """Returns r + gamma^n theta_j(s', a*) float32 [B, N'] of quantiles `following` [B, N'].

    If the episode terminated, the target is the reward, even if the quantiles are NaN.
    """
    bootstrap = (batch.discount.unsqueeze(1) * following).masked_fill(
        (batch.discount == 0).unsqueeze(1), 0.0
    )
    return batch.reward.unsqueeze(1) + bootstrap


def quantile_loss(
    quantiles: Tensor, fractions: Tensor, td_targets: Tensor, weight: Tensor, kappa: float
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Returns the weighted mean of sum over i of E_j[rho_tau_i(target_j - quantile_i)] [].

    The second result holds the mean value [] and the absolute errors of the means over quantiles
    [B].

    Args:
        quantiles: Quantiles of the actions taken, float32 [B, N].
        fractions: tau_i, float32 [B, N] or [1, N].
        td_targets: float32 [B, N'].
        weight: Weight of each sample, float32 [B].
        kappa: See `quantile_huber`.
    """
    error = td_targets.unsqueeze(1) - quantiles.unsqueeze(2)
    each = quantile_huber(error, fractions, kappa).mean(2).sum(1)
    return (each * weight).mean(), (
        quantiles.mean(),
        (td_targets.mean(1) - quantiles.mean(1)).abs(),
    )


def quantile_huber(error: Tensor, fractions: Tensor, kappa: float) -> Tensor:
    """Returns rho = |tau - 1{delta < 0}| L_kappa(delta) / kappa, float32 [B, N, N'].

    Equation 10 of Dabney et al. 2018, "Distributional Reinforcement Learning with Quantile
    Regression", over kappa.

    Args:
        error: delta_ij = target_j - quantile_i, float32 [B, N, N'].
        fractions: tau_i, float32 [B, N] or [1, N].
        kappa: L is delta^2 / 2 for |delta| up to kappa, and kappa (|delta| - kappa / 2) above.
    """
    tau, zero = fractions.unsqueeze(2), error.new_zeros(()).expand_as(error)
    # `huber_loss` is one kernel forwards and one backwards, which matters because the errors are
    # the largest tensor of an update.
    huber = huber_loss(error, zero, reduction="none", delta=kappa)
    return torch.where(error < 0, 1 - tau, tau) * huber / kappa
