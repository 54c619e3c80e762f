"""The settings that can move a loss, under the names that the two code bases give them.

A row of the table holds three cells:

1. the neutral name, which is Megatron-LM's too, then other spellings of Megatron-LM;
2. Bridge's keys, of which the first one told counts; a section and a dot, such as ``model.``, stands for the neutral
   name in that section;
3. Megatron-Core's default.

Rows stand in the order in which a difference is reported: what moves the first losses most comes first.
"""

from dataclasses import dataclass
from enum import StrEnum

from lossbisect.parsers.runlog import ConfigValue

__all__ = ["NOT_NAMED", "SETTINGS", "Setting", "SettingKind"]

NOT_NAMED = "(no default)"
"""Stands for a default that Bridge's summary leaves open: a setting it doesn't print is then unknown."""


class SettingKind(StrEnum):
    """What a difference in a setting does."""

    CONVERGENCE = "convergence"
    """It changes the loss by itself."""
    EXECUTION = "execution"
    """It changes how the loss is computed: order of additions, kernels, initialisation per rank."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One setting of a training run.

    Attributes:
        name: Neutral name, Megatron-LM's where it has one.
        megatron: Keys in Megatron-LM's dump of arguments, any of which may hold it.
        bridge: Dotted keys in Bridge's dump.
        default: Megatron-Core's default since core_v0.10. Bridge's summary leaves out an ``optimizer``, ``ddp`` or
            ``model`` setting that has it; `NOT_NAMED` for settings of Bridge's own classes, which it never prints.
        kind: What a difference does.
        reason: One clause for a person.
        only_if: Name of the setting that switches this one on; if it is off on both sides a difference is no news.
        needs_update: It acts once the optimizer has stepped, so it can't explain a difference in the first loss.
    """

    name: str
    megatron: tuple[str, ...]
    bridge: tuple[str, ...]
    default: ConfigValue
    kind: SettingKind
    reason: str
    only_if: str | None = None
    needs_update: bool = False


def _rows(
    kind: SettingKind,
    reason: str,
    *rows: tuple[str, str, ConfigValue],
    only_if: str | None = None,
    needs_update: bool = False,
) -> list[Setting]:
    """Settings that share a reason, from rows of names, Bridge's keys and default, as the table's head tells them."""
    settings = []
    for names, bridge, default in rows:
        name = names.split()[0]
        setting = Setting(
            name=name,
            megatron=tuple(names.split()),
            bridge=tuple(key + name if key.endswith(".") else key for key in bridge.split()),
            default=default,
            kind=kind,
            reason=reason,
            only_if=only_if,
            needs_update=needs_update,
        )
        settings.append(setting)
    return settings


_C, _E = SettingKind.CONVERGENCE, SettingKind.EXECUTION

# fmt: off
SETTINGS: tuple[Setting, ...] = (
    *_rows(
        _C, "another model",
        ("num_layers encoder_num_layers", "model.", 0),
        ("hidden_size", "model.", 0),
        ("ffn_hidden_size", "model.", NOT_NAMED),
        ("num_attention_heads", "model.", 0),
        ("num_query_groups", "model.", None),
        ("kv_channels", "model.", NOT_NAMED),
        ("padded_vocab_size", "model.", NOT_NAMED),
        ("position_embedding_type", "model.", NOT_NAMED),
        ("normalization", "model.", "LayerNorm"),
        ("layernorm_epsilon norm_epsilon", "model.", 1e-5),
        ("layernorm_zero_centered_gamma apply_layernorm_1p", "model.", False),
        ("gated_linear_unit swiglu", "model.", False),
        ("activation_func", "model.", NOT_NAMED),
        ("add_bias_linear", "model.", True),
        ("add_qkv_bias", "model.", False),
        ("qk_layernorm", "model.", False),
        ("multi_latent_attention", "model.", False),
        ("untie_embeddings_and_output_weights", "model.", NOT_NAMED),
        ("num_experts", "model.num_moe_experts", None),
        ("mtp_num_layers", "model.", None),
    ),
    *_rows(
        _C, "another position encoding",
        ("rotary_base", "model.", NOT_NAMED),
        ("rotary_percent", "model.", NOT_NAMED),
        ("rotary_interleaved", "model.", False),
        only_if="rope",
    ),
    *_rows(
        _C, "other initial weights",
        ("seed", "rng.", 1234),
        ("init_method_std", "model.", 0.02),
        ("embedding_init_method_std", "model.", None),
        ("use_cpu_initialization", "model.", False),
        ("use_mup", "model.", False),
    ),
    *_rows(
        _C, "other samples, or in another order",
        ("data_seed seed", "dataset.random_seed", 1234),
        ("mock_data", "dataset.mock", NOT_NAMED),
        ("seq_length", "dataset. dataset.sequence_length model.", NOT_NAMED),
        ("global_batch_size", "train.", NOT_NAMED),
        ("rampup_batch_size", "train.", None),
        ("dataloader_type", "dataset.", NOT_NAMED),
        ("reset_position_ids", "dataset.", NOT_NAMED),
        ("reset_attention_mask", "dataset.", NOT_NAMED),
        ("eod_mask_loss", "dataset.", NOT_NAMED),
    ),
    *_rows(
        _C, "other samples",
        ("data_path train_data_path data_args_path", "dataset. dataset.blend", NOT_NAMED),
        ("split", "dataset.", NOT_NAMED),
        only_if="real_data",
    ),
    *_rows(
        _C, "another loss",
        ("calculate_per_token_loss", "model.", False),
        ("mtp_loss_scaling_factor", "model.", 0.1),
    ),
    *_rows(
        _C, "another rounding of every operation",
        ("precision", "", NOT_NAMED),
        ("fp32_residual_connection", "model.", False),
        ("attention_softmax_in_fp32", "model.", True),
        ("gradients_in_fp32 accumulate_allreduce_grads_in_fp32", "ddp.grad_reduce_in_fp32", False),
        only_if="low_precision",
    ),
    *_rows(
        _C, "other iterations are skipped",
        ("initial_loss_scale", "optimizer.", 2**32),
        ("loss_scale", "optimizer.", None),
        ("loss_scale_window", "optimizer.", 1000),
        only_if="float16",
    ),
    *_rows(
        _C, "other random zeros",
        ("hidden_dropout", "model.", 0.1),
        ("attention_dropout", "model.", 0.1),
    ),
    *_rows(
        _C, "routes tokens in another way",
        ("moe_router_topk", "model.", 2),
        ("moe_router_load_balancing_type", "model.", "aux_loss"),
        ("moe_router_score_function", "model.", "softmax"),
        ("moe_router_pre_softmax", "model.", False),
        ("moe_router_enable_expert_bias", "model.", False),
        ("moe_router_topk_scaling_factor", "model.", None),
        ("moe_router_dtype", "model.", None),
        ("moe_expert_capacity_factor", "model.", None),
        ("moe_aux_loss_coeff", "model.", 0.0),
        ("moe_z_loss_coeff", "model.", None),
        ("moe_ffn_hidden_size", "model.", NOT_NAMED),
        ("moe_shared_expert_intermediate_size", "model.", None),
        only_if="num_experts",
    ),
    *_rows(
        _C, "other steps of the optimizer",
        ("optimizer", "optimizer.", "adam"),
        ("lr", "optimizer.", NOT_NAMED),
        ("lr_warmup_iters", "scheduler.", NOT_NAMED),
        ("lr_warmup_init", "scheduler.", NOT_NAMED),
        ("adam_beta1", "optimizer.", 0.9),
        ("adam_beta2", "optimizer.", 0.999),
        ("adam_eps", "optimizer.", 1e-8),
        ("clip_grad", "optimizer.", 1.0),
        ("lr_decay_style", "scheduler.", NOT_NAMED),
        ("lr_decay_iters", "scheduler.", NOT_NAMED),
        ("min_lr", "optimizer.", NOT_NAMED),
        ("decoupled_lr", "optimizer.", None),
        ("weight_decay", "optimizer.", 0.01),
        needs_update=True,
    ),
    *_rows(
        _E, "initial weights and dropout differ per tensor-parallel rank",
        ("tensor_model_parallel_size", "model.", 1),
    ),
    *_rows(
        _E, "initial weights differ per pipeline stage",
        ("pipeline_model_parallel_size", "model.", 1),
        ("virtual_pipeline_model_parallel_size", "model.", None),
    ),
    *_rows(
        _E, "initial weights of experts differ per rank",
        ("expert_model_parallel_size", "model.", 1),
        ("expert_tensor_parallel_size", "model.", NOT_NAMED),
        ("moe_token_dispatcher_type", "model.", "allgather"),
        ("moe_grouped_gemm", "model.", False),
        ("moe_permute_fusion", "model.", False),
        only_if="num_experts",
    ),
    *_rows(
        _E, "the fused kernel rounds the gradient of the logits to bfloat16, in a float32 run too",
        ("cross_entropy_loss_fusion", "model.", False),
    ),
    *_rows(
        _E, "another order of additions",
        ("sequence_parallel", "model.", False),
        ("context_parallel_size", "model.", 1),
        ("data_parallel_size", "dataset.", NOT_NAMED),
        ("micro_batch_size", "train.", NOT_NAMED),
        ("use_distributed_optimizer", "optimizer.", False),
        ("use_megatron_fsdp", "ddp.", False),
        ("deterministic_mode", "model.", False),
    ),
    *_rows(
        _E, "other kernels",
        ("transformer_impl", "model.", NOT_NAMED),
        ("attention_backend", "model.", "auto"),
        ("masked_softmax_fusion", "model.", False),
        ("bias_dropout_fusion", "model.", False),
        ("bias_activation_fusion bias_gelu_fusion", "model.", False),
        ("apply_rope_fusion", "model.", False),
        ("gradient_accumulation_fusion", "model.", False),
        ("recompute_granularity", "model.", None),
    ),
)
# fmt: on
"""Every setting that is compared."""
