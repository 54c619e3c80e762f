"""What Megatron-LM makes of its arguments before it trains, as its ``validate_args`` does. Pure."""

from collections.abc import Mapping

from lossbisect.assist.translate.source import Value

__all__ = ["derived", "is_on"]


def derived(told: Mapping[str, Value], defaults: Mapping[str, Value], *, num_processes: int | None) -> dict[str, Value]:
    """Every argument's value as Megatron-LM trains with it.

    Args:
        told: What the user says.
        defaults: The parser's.
        num_processes: How many processes train; None: not known, so the global batch size stays None if it isn't told.
    """
    settings = {**defaults, **told}
    _model(settings)
    _experts(settings)
    _parallel(settings)
    _training(settings, num_processes)
    return settings


def is_on(settings: Mapping[str, Value], name: str, values: tuple[str, ...] = ()) -> bool:
    """Whether a setting is switched on, or has one of some values."""
    value = settings.get(name)
    return str(value) in values if values else value not in (None, False, 0, [])


def _model(s: dict[str, Value]) -> None:
    if s.get("num_layers") is None:
        s["num_layers"] = s.get("encoder_num_layers")
    if s.get("seq_length") is None:
        s["seq_length"] = s.get("encoder_seq_length")
    if is_on(s, "use_rotary_position_embeddings"):
        s["position_embedding_type"] = "rope"
    if s.get("position_embedding_type") != "rope":
        s["apply_rope_fusion"] = False
    hidden = s.get("hidden_size")
    if s.get("ffn_hidden_size") is None and isinstance(hidden, int):
        # A gated unit has two first layers: two thirds of the width keep the number of parameters.
        s["ffn_hidden_size"] = int((4 * hidden * 2 / 3) / 64) * 64 if is_on(s, "swiglu") else 4 * hidden
    if not is_on(s, "group_query_attention"):
        s["num_query_groups"] = None
    if s.get("add_bias_linear") is False:
        s["bias_gelu_fusion"] = False
    if is_on(s, "recompute_activations"):
        s["recompute_granularity"] = "selective"
    if is_on(s, "bf16") and not is_on(s, "grad_reduce_in_bf16") and s.get("main_grads_dtype") in (None, "fp32"):
        s["accumulate_allreduce_grads_in_fp32"] = True
    elif is_on(s, "grad_reduce_in_bf16"):
        s["accumulate_allreduce_grads_in_fp32"] = False
    if is_on(s, "fp16") and not is_on(s, "loss_scale"):
        s["check_for_nan_in_loss_and_grad"] = False  # it would stop what the loss scale is there to survive


def _experts(s: dict[str, Value]) -> None:
    if s.get("num_experts") == 0:
        s["num_experts"] = None
    if is_on(s, "num_experts") and s.get("moe_ffn_hidden_size") is None:
        s["moe_ffn_hidden_size"] = s.get("ffn_hidden_size")
    if is_on(s, "num_experts") and s.get("expert_tensor_parallel_size") is None:
        s["expert_tensor_parallel_size"] = s.get("tensor_model_parallel_size")


def _parallel(s: dict[str, Value]) -> None:
    stages, layers, chunk = s.get("pipeline_model_parallel_size"), s.get("num_layers"), None
    chunk = s.get("num_layers_per_virtual_pipeline_stage")
    if isinstance(chunk, int) and isinstance(stages, int) and isinstance(layers, int):
        extra = is_on(s, "account_for_embedding_in_pipeline_split") + is_on(s, "account_for_loss_in_pipeline_split")
        virtual: Value = (layers + extra) // stages // chunk if chunk and stages else None
    else:
        virtual = s.get("num_virtual_stages_per_pipeline_rank")
    s["virtual_pipeline_model_parallel_size"] = None if virtual == 1 else virtual
    if s["virtual_pipeline_model_parallel_size"] is None and s.get("pipeline_model_parallel_layout") is None:
        s["overlap_p2p_comm"] = s["align_param_gather"] = False
    if s.get("tensor_model_parallel_size") == 1:
        s["sequence_parallel"] = False
    if is_on(s, "use_megatron_fsdp"):
        s["use_distributed_optimizer"] = True


def _training(s: dict[str, Value], num_processes: int | None) -> None:
    if s.get("weight_decay_incr_style") in (None, "constant"):
        s["start_weight_decay"] = s["end_weight_decay"] = s.get("weight_decay")
    if s.get("dataloader_type") is None:
        s["dataloader_type"] = "single"
    if is_on(s, "mock_data"):
        s["data_path"] = None
    elif is_on(s, "data_path") and s.get("split") is None:
        s["split"] = "969, 30, 1"
    micro = s.get("micro_batch_size")
    model = [s.get(f"{kind}_parallel_size") for kind in ("tensor_model", "pipeline_model", "context")]
    if s.get("global_batch_size") is None and isinstance(micro, int) and num_processes is not None:
        ranks = num_processes
        for size in model:
            ranks //= size if isinstance(size, int) and size else 1
        s["global_batch_size"] = micro * ranks
