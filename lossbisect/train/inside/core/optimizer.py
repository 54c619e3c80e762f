"""Megatron-Core's optimizer and its schedule, with the overrides of each era."""

import copy
from typing import Any

from lossbisect.train.inside.core.settings import Settings, accepts, fitted

__all__ = ["build", "learning_rates"]


def build(settings: Settings, model: Any) -> tuple[Any, Any]:
    """The optimizer of a wrapped model, and the scheduler of its learning rate and weight decay.

    Raises:
        MissingFeatureError: The commit lacks a setting of either.
    """
    import torch
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer

    given = dict(settings["optimizer"])
    for key in [key for key in given if key.endswith("dtype")]:
        given[key] = getattr(torch, given[key])
    decoupled = {key: value for key, value in given.items() if key in ("decoupled_lr", "decoupled_min_lr")}
    has_overrides = accepts(get_megatron_optimizer, "config_overrides")
    if has_overrides and not accepts(OptimizerConfig, "decoupled_lr"):  # 2025-11 to 2026-04: overrides alone say it
        given = {key: value for key, value in given.items() if key not in decoupled}
    config = OptimizerConfig(**fitted(OptimizerConfig, given))
    extras: dict[str, Any] = {}
    if has_overrides:
        extras["config_overrides"] = _overrides(config, **decoupled)
    # As Megatron-LM's training loop does. A commit that has lost this promise of --embedding-init-method-std decays
    # embeddings: that's a change of the loss, not a missing feature.
    if "embedding_init_method_std" in settings["model"] and accepts(
        get_megatron_optimizer, "default_skip_embedding_weight_decay"
    ):
        extras["default_skip_embedding_weight_decay"] = True
    optimizer = get_megatron_optimizer(config, [model], **extras)
    return optimizer, _scheduler(settings, optimizer)


def _overrides(config: Any, decoupled_lr: float | None = None, decoupled_min_lr: float | None = None) -> Any:
    """What a caller of ``get_megatron_optimizer`` has to say since 2025-11 to have its configuration followed."""
    from megatron.core import optimizer as module

    standard = getattr(module, "get_standard_config_overrides", None)
    if standard is not None and accepts(standard, "config"):  # since 2026-04
        return standard(config)
    if standard is not None:  # since 2026-01
        return standard(decoupled_lr, decoupled_min_lr)
    if decoupled_lr is None:
        return None
    from megatron.core.optimizer.optimizer_config import ParamKey

    decoupled = copy.deepcopy(config)
    decoupled.lr, decoupled.min_lr = decoupled_lr, decoupled_min_lr
    return {ParamKey(attr="is_embedding_or_output_parameter"): decoupled}


def _scheduler(settings: Settings, optimizer: Any) -> Any:
    try:
        from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler as Scheduler
    except ModuleNotFoundError:  # it came to Megatron-Core on 2024-08-30
        from megatron.training.optimizer_param_scheduler import OptimizerParamScheduler as Scheduler
    return Scheduler(optimizer, **fitted(Scheduler, settings["scheduler"]))


def learning_rates(optimizer: Any) -> tuple[float, float]:
    """Smallest and largest learning rate of the parameter groups."""
    rates = [float(group["lr"]) for group in optimizer.param_groups]
    return min(rates), max(rates)
