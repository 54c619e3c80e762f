"""Arguments that go together: several of one side make several of the other. Pure.

Each group is two functions: Megatron-LM's settings to Bridge's, and back. What it can't say raises `NoCounterpart`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lossbisect.assist.translate.source import Made, Value

__all__ = ["ATTENTION_BACKEND", "GROUPS", "MIXED", "Group", "NoCounterpart", "precision_of"]

type _Settings = Mapping[str, Value]
type _Function = Callable[[_Settings], dict[str, Value]]

MIXED = "mixed_precision"
"""Bridge's section that overwrites, when training starts, every setting of the same name in three other sections."""


ATTENTION_BACKEND = ("megatron.core.transformer.enums", "AttnBackend")
"""Module and name of the enum."""


class NoCounterpart(Exception):  # noqa: N818
    """The other side can't say this; the message is a clause that tells why, and what comes nearest."""


@dataclass(frozen=True, slots=True)
class Group:
    """The two directions of a group.

    Attributes:
        forward: Megatron-LM's settings to Bridge's.
        backward: Bridge's to Megatron-LM's.
        is_spelling: Its arguments are another spelling of ones that have rules of their own.
    """

    forward: _Function
    backward: _Function
    is_spelling: bool = False


def _nothing(settings: _Settings) -> dict[str, Value]:  # noqa: ARG001
    """For another spelling of an argument, which has a rule of its own."""
    return {}


_ACTIVATIONS: dict[str, tuple[str, bool]] = {
    "swiglu": ("silu", True),
    "squared_relu": ("squared_relu", False),
    "quick_geglu": ("quick_gelu", True),
}


def _activation(s: _Settings) -> dict[str, Value]:
    function, gated = next((made for name, made in _ACTIVATIONS.items() if s.get(name)), ("gelu", False))
    return {"model.activation_func": function, "model.gated_linear_unit": gated}


def _activation_back(b: _Settings) -> dict[str, Value]:
    function = str(b.get("model.activation_func")).rpartition(".")[2]
    made = (function, bool(b.get("model.gated_linear_unit")))
    if made == ("gelu", False):
        return dict.fromkeys(_ACTIVATIONS, False)
    name = next((name for name, its in _ACTIVATIONS.items() if its == made), None)
    if name is None:
        gated = "gated " if made[1] else ""
        raise NoCounterpart(f"no argument gives a {gated}{function}; the nearest are --swiglu and --squared-relu")
    return {other: other == name for other in _ACTIVATIONS}


def _bias_activation(s: _Settings) -> dict[str, Value]:
    return {"model.bias_activation_fusion": s.get("bias_swiglu_fusion" if s.get("swiglu") else "bias_gelu_fusion")}


def _bias_activation_back(b: _Settings) -> dict[str, Value]:
    gated = str(b.get("model.activation_func")).rpartition(".")[2] == "silu" and b.get("model.gated_linear_unit")
    return {"bias_swiglu_fusion" if gated else "bias_gelu_fusion": bool(b.get("model.bias_activation_fusion"))}


def _query_groups(s: _Settings) -> dict[str, Value]:
    return {"model.num_query_groups": s.get("num_query_groups") if s.get("group_query_attention") else None}


def _query_groups_back(b: _Settings) -> dict[str, Value]:
    groups = b.get("model.num_query_groups")
    return {"group_query_attention": groups is not None, **({"num_query_groups": groups} if groups else {})}


def _positions(s: _Settings) -> dict[str, Value]:
    told, length = s.get("max_position_embeddings"), s.get("seq_length")
    if s.get("position_embedding_type") == "learned_absolute" and None not in (told, length) and told != length:
        raise NoCounterpart(
            f"Bridge learns one position for each of the {length} of a sequence, which makes other first weights; "
            f"give --max-position-embeddings {length}"
        )
    return {}


def _positions_back(b: _Settings) -> dict[str, Value]:
    return {"max_position_embeddings": b.get("model.seq_length")}


def precision_of(s: _Settings) -> str | None:
    """Name of Bridge's mixed precision for Megatron-LM's flags; None: float32."""
    return "bf16_mixed" if s.get("bf16") else "fp16_mixed" if s.get("fp16") else None


def _precision_back(b: _Settings) -> dict[str, Value]:
    mixed = b.get(MIXED)
    if isinstance(mixed, Made):
        return {"bf16": bool(mixed.values.get("bf16")), "fp16": bool(mixed.values.get("fp16"))}
    name = str(mixed or "").replace("-", "_")
    if name not in ("", "bf16_mixed", "fp16_mixed"):
        raise NoCounterpart(f"{name}: spell it out as the fields of a MixedPrecisionConfig")
    return {"bf16": name == "bf16_mixed", "fp16": name == "fp16_mixed"}


def _gradients_back(b: _Settings) -> dict[str, Value]:
    mixed = b.get(MIXED)
    if mixed is None:
        return {}
    told = mixed.values.get("grad_reduce_in_fp32") if isinstance(mixed, Made) else "bf16" in str(mixed)
    is_bf16 = mixed.values.get("bf16") if isinstance(mixed, Made) else "bf16" in str(mixed)
    if is_bf16:
        return {"grad_reduce_in_bf16": not told, "accumulate_allreduce_grads_in_fp32": bool(told)}
    return {"accumulate_allreduce_grads_in_fp32": bool(told)}


_DECAY = ("start_weight_decay", "end_weight_decay", "weight_decay_incr_style")


def _weight_decay(s: _Settings) -> dict[str, Value]:
    # Bridge's scheduler writes its own weight decay over the optimizer's at every iteration.
    return {"optimizer.weight_decay": s.get("weight_decay"), **{f"scheduler.{name}": s.get(name) for name in _DECAY}}


def _weight_decay_back(b: _Settings) -> dict[str, Value]:
    start, end, style = (b.get(f"scheduler.{name}") for name in _DECAY)
    told = b.get("optimizer.weight_decay")
    if style in (None, "constant"):
        if start != end:
            raise NoCounterpart(f"a constant weight decay that starts at {start} and ends at {end}")
        return {"weight_decay": told if start is None else start, "weight_decay_incr_style": "constant"}
    return {
        "weight_decay": told,
        "start_weight_decay": start,
        "end_weight_decay": end,
        "weight_decay_incr_style": style,
    }


_VIRTUAL = "model.virtual_pipeline_model_parallel_size"


def _pipeline(s: _Settings) -> dict[str, Value]:
    return {_VIRTUAL: s.get("virtual_pipeline_model_parallel_size")}


def _pipeline_back(b: _Settings) -> dict[str, Value]:
    return {"num_virtual_stages_per_pipeline_rank": b.get(_VIRTUAL)}


_NAN_CHECKS = ("ddp.check_for_nan_in_grad", "rerun_state_machine.check_for_nan_in_loss")


def _nan_checks(s: _Settings) -> dict[str, Value]:
    return dict.fromkeys(_NAN_CHECKS, s.get("check_for_nan_in_loss_and_grad"))


def _nan_checks_back(b: _Settings) -> dict[str, Value]:
    return {"check_for_nan_in_loss_and_grad": bool(b.get(_NAN_CHECKS[0]))}


def _padded(s: _Settings) -> dict[str, Value]:
    return {"model.vocab_size": s.get("padded_vocab_size")}


def _padded_back(b: _Settings) -> dict[str, Value]:
    return {} if b.get("model.should_pad_vocab") else {"padded_vocab_size": b.get("model.vocab_size")}


def _data_back(b: _Settings) -> dict[str, Value]:
    return {"mock_data": b.get("dataset.data_path") in (None, []) and b.get("dataset.blend") is None}


GROUPS: dict[str, Group] = {
    "activation": Group(_activation, _activation_back),
    "bias_activation": Group(_bias_activation, _bias_activation_back),
    "query_groups": Group(_query_groups, _query_groups_back),
    "positions": Group(_positions, _positions_back, is_spelling=True),
    "precision": Group(_nothing, _precision_back),
    "gradients": Group(_nothing, _gradients_back, is_spelling=True),
    "weight_decay": Group(_weight_decay, _weight_decay_back),
    "pipeline": Group(_pipeline, _pipeline_back),
    "nan_checks": Group(_nan_checks, _nan_checks_back),
    "padded": Group(_padded, _padded_back),
    "data": Group(_nothing, _data_back, is_spelling=True),
    "layers": Group(_nothing, _nothing, is_spelling=True),
    "length": Group(_nothing, _nothing, is_spelling=True),
    "rope": Group(_nothing, _nothing, is_spelling=True),
    "recompute": Group(_nothing, _nothing, is_spelling=True),
}
"""By the name that ``rules.toml`` gives them."""
