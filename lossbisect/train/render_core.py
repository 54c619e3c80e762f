"""A recipe in the words of the `core` trainer: ``GROUP.KEY=VALUE``, in Megatron-Core's own names. Pure.

What every commit has is always said; a setting at the default that all trainers share isn't, so that a commit needn't
know it.
"""

import json
from pathlib import Path
from typing import Any

from lossbisect.train.parts import Part, checkpoints
from lossbisect.train.recipes import (
    Activation,
    LoadBalancing,
    Normalization,
    PositionEmbedding,
    Precision,
    Recipe,
    RouterScore,
)
from lossbisect.train.types import Lane

__all__ = ["core_settings"]

_POSITIONS = {PositionEmbedding.LEARNED: "learned_absolute", PositionEmbedding.ROPE: "rope"}
_NORMS = {Normalization.LAYER_NORM: "LayerNorm", Normalization.RMS_NORM: "RMSNorm"}
_PADDED_TO = 128
"""Megatron-LM pads its vocabulary to a multiple of this for each tensor-parallel rank."""


def core_settings(
    recipe: Recipe,
    *,
    lane: Lane,  # noqa: ARG001  # the same words on every lane: local layers, no fused kernels
    out: Path,
    part: Part = Part.WHOLE,
) -> list[str]:
    """Settings of ``lossbisect.train.inside.core_main``, one a word.

    Args:
        recipe: What to train.
        lane: Where.
        out: The run's directory; a restarting recipe's checkpoint goes into it.
        part: Which part of a recipe that restarts.
    """
    groups = {
        "model": _model(recipe),
        "gpt": _gpt(recipe),
        "spec": _spec(recipe),
        "ddp": _ddp(recipe),
        "optimizer": _optimizer(recipe),
        "scheduler": _scheduler(recipe),
        "parallel": _parallel(recipe),
        "train": _train(recipe, out, part),
        "data": _data(recipe),
    }
    return [
        f"{group}.{key}={value if isinstance(value, str) else json.dumps(value)}"
        for group, values in groups.items()
        for key, value in values.items()
    ]


def _model(recipe: Recipe) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "num_layers": recipe.layers,
        "hidden_size": recipe.hidden_size,
        "num_attention_heads": recipe.attention_heads,
        "ffn_hidden_size": recipe.ffn_hidden_size,
        "hidden_dropout": recipe.hidden_dropout,
        "attention_dropout": recipe.attention_dropout,
        "masked_softmax_fusion": False,
        **_parallel(recipe),
    }
    optional = {
        "num_query_groups": recipe.query_groups,
        "qk_layernorm": recipe.qk_layernorm,
        "calculate_per_token_loss": recipe.per_token_loss,
        "sequence_parallel": recipe.sequence_parallel,
        "mtp_num_layers": recipe.mtp_layers,
        "embedding_init_method_std": recipe.embedding_init_std,
    }
    settings |= {key: value for key, value in optional.items() if value}
    if recipe.normalization is not Normalization.LAYER_NORM:
        settings["normalization"] = _NORMS[recipe.normalization]
    if recipe.activation is Activation.SWIGLU:
        settings |= {"gated_linear_unit": True, "activation_func": "silu"}
    if not recipe.linear_bias:
        settings["add_bias_linear"] = False
    if recipe.multi_latent_attention:
        settings |= {"multi_latent_attention": True, "rope_type": "rope", "kv_channels": 128}
    if recipe.experts:
        settings |= _moe(recipe)
    if recipe.precision is Precision.BF16:
        settings |= {"bf16": True, "params_dtype": "bfloat16", "pipeline_dtype": "bfloat16"}
    elif recipe.pipeline_parallel > 1:
        settings["pipeline_dtype"] = "float32"
    return settings


def _moe(recipe: Recipe) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "num_moe_experts": recipe.experts,
        "moe_router_topk": recipe.experts_per_token,
        "moe_aux_loss_coeff": recipe.aux_loss_coefficient,
    }
    if recipe.expert_ffn_hidden_size:
        settings["moe_ffn_hidden_size"] = recipe.expert_ffn_hidden_size
    if recipe.load_balancing is not LoadBalancing.AUX_LOSS:
        settings["moe_router_load_balancing_type"] = recipe.load_balancing.value
    if recipe.z_loss_coefficient:
        settings["moe_z_loss_coeff"] = recipe.z_loss_coefficient
    if recipe.router_score is not RouterScore.SOFTMAX:
        settings["moe_router_score_function"] = recipe.router_score.value
    if recipe.expert_bias:
        settings["moe_router_enable_expert_bias"] = True
    return settings


def _gpt(recipe: Recipe) -> dict[str, Any]:
    unit = _PADDED_TO * recipe.tensor_parallel
    return {
        "vocab_size": -(-(recipe.vocabulary_size + 1) // unit) * unit,
        "max_sequence_length": recipe.sequence_length,
        "position_embedding_type": _POSITIONS[recipe.position_embedding],
        "share_embeddings_and_output_weights": recipe.tied_embeddings,
    }


def _spec(recipe: Recipe) -> dict[str, Any]:
    """What the layer specification is asked for."""
    settings: dict[str, Any] = {}
    if recipe.experts:
        settings |= {"num_experts": recipe.experts, "moe_grouped_gemm": False}
    if recipe.qk_layernorm:
        settings["qk_layernorm"] = True
    if recipe.multi_latent_attention:
        settings["multi_latent_attention"] = True
    if recipe.normalization is not Normalization.LAYER_NORM:
        settings["normalization"] = _NORMS[recipe.normalization]
    return settings


def _ddp(recipe: Recipe) -> dict[str, Any]:
    return {
        "use_distributed_optimizer": recipe.distributed_optimizer,
        "grad_reduce_in_fp32": recipe.precision is Precision.BF16,
    }


def _optimizer(recipe: Recipe) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "optimizer": "adam",
        "lr": recipe.lr,
        "min_lr": recipe.min_lr,
        "weight_decay": recipe.weight_decay,
        "adam_beta1": recipe.adam_beta1,
        "adam_beta2": recipe.adam_beta2,
        "adam_eps": recipe.adam_eps,
        "clip_grad": recipe.clip_grad,
        "log_num_zeros_in_grad": True,
        "use_distributed_optimizer": recipe.distributed_optimizer,
    }
    if recipe.decoupled_lr:
        settings |= {"decoupled_lr": recipe.decoupled_lr, "decoupled_min_lr": recipe.decoupled_min_lr}
    if recipe.precision is Precision.BF16:
        settings |= {"bf16": True, "params_dtype": "bfloat16"}
    return settings


def _scheduler(recipe: Recipe) -> dict[str, Any]:
    """In iterations, where Megatron-LM counts samples: the ratio is the same."""
    return {
        "init_lr": 0.0,
        "max_lr": recipe.lr,
        "min_lr": recipe.min_lr,
        "lr_warmup_steps": recipe.lr_warmup_iterations,
        "lr_decay_steps": recipe.lr_decay_iterations,
        "lr_decay_style": recipe.lr_schedule.value,
        "start_wd": recipe.weight_decay,
        "end_wd": recipe.weight_decay,
        "wd_incr_steps": recipe.iterations,
        "wd_incr_style": "constant",
        "use_checkpoint_opt_param_scheduler": False,
        "override_opt_param_scheduler": False,
    }


def _parallel(recipe: Recipe) -> dict[str, Any]:
    return {
        "tensor_model_parallel_size": recipe.tensor_parallel,
        "pipeline_model_parallel_size": recipe.pipeline_parallel,
    }


def _train(recipe: Recipe, out: Path, part: Part) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "iterations": recipe.iterations,
        "micro_batch_size": recipe.micro_batch_size,
        "global_batch_size": recipe.global_batch_size,
        "seed": recipe.seed,
    }
    if part is Part.FIRST:
        settings |= {"stop_after": recipe.restart_at, "save": str(checkpoints(out))}
    elif part is Part.SECOND:
        settings["load"] = str(checkpoints(out))
    return settings


def _data(recipe: Recipe) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "sequence_length": recipe.sequence_length,
        "end_of_document": recipe.vocabulary_size,
    }
    if recipe.mask_end_of_document:
        settings["mask_end_of_document"] = True
    if recipe.masked_microbatch_at:
        settings["masked_microbatch_at"] = recipe.masked_microbatch_at
    return settings
