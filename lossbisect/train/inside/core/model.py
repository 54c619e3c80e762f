"""A GPT of Megatron-Core's local layers, in its data-parallel wrapper."""

from typing import Any

from lossbisect.train.inside.core.settings import MissingFeatureError, Settings, fitted

__all__ = ["build", "transformer_config"]


def transformer_config(settings: Settings) -> Any:
    """The commit's ``TransformerConfig``, or ``MLATransformerConfig`` for multi-latent attention."""
    import torch
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.transformer import transformer_config as module

    given = dict(settings["model"])
    name = "MLATransformerConfig" if given.get("multi_latent_attention") else "TransformerConfig"
    if not hasattr(module, name):
        raise MissingFeatureError(f"this commit has no {name}")
    if "activation_func" in given:
        given["activation_func"] = getattr(torch.nn.functional, given["activation_func"])
    for key in [key for key in given if key.endswith("dtype")]:
        given[key] = getattr(torch, given[key])
    make = getattr(module, name)
    config = make(**fitted(make, given))
    config.finalize_model_grads_func = finalize_model_grads
    return config


def _layer_spec(settings: Settings) -> Any:
    from megatron.core.models.gpt import gpt_layer_specs

    local = gpt_layer_specs.get_gpt_layer_local_spec
    # Of 2026 it takes anything and hands it on to this one.
    named = getattr(gpt_layer_specs, "get_gpt_layer_local_submodules", local)
    return local(**fitted(named, settings["spec"]))


def _mtp_spec(config: Any, layer: Any) -> Any:
    from megatron.core.models.gpt import gpt_layer_specs

    if not hasattr(gpt_layer_specs, "get_gpt_mtp_block_spec"):
        raise MissingFeatureError("this commit has no multi-token prediction")
    return gpt_layer_specs.get_gpt_mtp_block_spec(config, layer, use_transformer_engine=False)


def build(settings: Settings, config: Any) -> Any:
    """The wrapped model of this rank.

    Raises:
        MissingFeatureError: The commit lacks a part of it.
    """
    from megatron.core import parallel_state
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.models.gpt import GPTModel
    from megatron.core.transformer.module import Float16Module

    layer = _layer_spec(settings)
    given = dict(settings["gpt"])
    if settings["model"].get("mtp_num_layers"):
        given["mtp_block_spec"] = _mtp_spec(config, layer)
    model = GPTModel(
        config=config,
        transformer_layer_spec=layer,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
        **fitted(GPTModel, given),
    ).cuda()
    if config.bf16:
        model = Float16Module(config, model)
    ddp_config = DistributedDataParallelConfig(**fitted(DistributedDataParallelConfig, settings["ddp"]))
    return DistributedDataParallel(config, ddp_config, model)
