"""Sizes of models: of those that Bridge has recipes for, or from a Hugging Face ``config.json``."""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lossbisect.assist.recommend.types import Shape
from lossbisect.errors import LossbisectError

__all__ = ["known_shape", "shape_from_hf"]

_TABLE = Path(__file__).with_name("shapes.toml")


def known_shape(model: str) -> Shape | None:
    """The shape of a model by its name in Bridge's recipes; None where the table doesn't have it."""
    fields = _table().get(model)
    return Shape(name=model, **fields) if fields else None


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def shape_from_hf(file: Path) -> Shape:
    """The shape that a model's own ``config.json`` describes; of a model with an encoder, its language model.

    Raises:
        LossbisectError: The file can't be read, or lacks a size.
    """
    try:
        outer = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LossbisectError(f"{file}: not a readable config.json ({error}).") from error
    config: Mapping[str, Any] = outer.get("text_config") or outer.get("llm_config") or outer
    missing = [name for name in ("num_hidden_layers", "hidden_size", "num_attention_heads") if name not in config]
    if missing:
        raise LossbisectError(f"{file}: no {', '.join(missing)}: is it the config.json of a language model?")

    def number(*names: str, default: int = 0) -> int:
        return next((value for name in names if isinstance(value := config.get(name), int)), default)

    heads, hidden = number("num_attention_heads"), number("hidden_size")
    experts = number("num_experts", "n_routed_experts", "num_local_experts")
    expert_ffn = number("moe_intermediate_size", "intermediate_size") if experts else 0
    shared = number("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
    return Shape(
        name=str(outer.get("_name_or_path") or file.parent.name or file.name),
        source=str(file),
        num_layers=number("num_hidden_layers"),
        hidden_size=hidden,
        ffn_hidden_size=number("intermediate_size", default=4 * hidden),
        heads=heads,
        query_groups=number("num_key_value_heads", default=heads),
        kv_channels=number("head_dim", default=hidden // heads),
        vocab_size=number("vocab_size", default=number("vocab_size")) or int(outer.get("vocab_size", 0)),
        is_tied=bool(config.get("tie_word_embeddings", outer.get("tie_word_embeddings", False))),
        is_gated=config.get("hidden_act", "silu") in ("silu", "swiglu", "gelu_pytorch_tanh"),
        experts=experts,
        expert_ffn=expert_ffn,
        shared_expert_ffn=shared or number("n_shared_experts") * expert_ffn,
        top_k=number("num_experts_per_tok", "moe_top_k"),
        dense_layers=number("first_k_dense_replace"),
        mtp_layers=number("num_nextn_predict_layers"),
        is_latent=bool(config.get("kv_lora_rank")),
        q_lora_rank=number("q_lora_rank"),
        kv_lora_rank=number("kv_lora_rank"),
        qk_head_dim=number("qk_nope_head_dim"),
        qk_pos_emb_head_dim=number("qk_rope_head_dim"),
        v_head_dim=number("v_head_dim"),
        is_hybrid=any(
            name in config for name in ("hybrid_override_pattern", "mamba_num_heads", "linear_num_key_heads")
        ),
    )
