"""Memory of the fullest GPU, by theory. Pure.

Parameters and what belongs to them follow Megatron-LM's ``megatron/training/theoretical_memory_usage.py``: bfloat16
weights (2 bytes), float32 gradients (4), float32 main weights and Adam's two moments (12, shared by the data-parallel
ranks where the optimizer is distributed). Activations follow table 2 of Korthikanti et al. 2022, arXiv:2205.05198, with
attention scores that aren't stored (flash attention). What that file leaves out is added here: context parallelism,
the width that a token really meets in an MoE layer, full recomputation, adapters. docs/recommend.md has the formulas.
"""

import math
from dataclasses import dataclass

from lossbisect.assist.recommend.types import Fit, Layout, Memory, Shape

__all__ = ["GPU_MEMORY_GIB", "Parameters", "Training", "count_parameters", "estimate"]

GIB = 1024**3
GPU_MEMORY_GIB = {
    "a100": 80.0, "h100": 80.0, "h200": 141.0, "b200": 180.0, "gb200": 186.0, "b300": 270.0, "gb300": 278.0,
    "r100": 288.0, "vr200": 288.0,
}  # fmt: skip
"""What a GPU of each type has, in GiB, as its data sheet says; --memory says otherwise."""

_FITS, _TIGHT = 0.80, 0.95
"""Shares of the memory: the theory leaves out CUDA's context, communication buffers, workspaces and fragmentation."""
_ADAPTER_RANK = 32
_VOCABULARY_MULTIPLE = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """How a model is trained, as far as memory is concerned.

    Attributes:
        sequence_length: Tokens per sequence.
        recompute: ``full``, ``selective`` or None.
        is_peft: Only adapters are trained.
        is_sharded: The optimizer is distributed.
        is_fsdp: Weights and gradients are sharded over data-parallel ranks too.
        is_offloaded: Activations wait in the CPU's memory.
    """

    sequence_length: int
    recompute: str | None = None
    is_peft: bool = False
    is_sharded: bool = True
    is_fsdp: bool = False
    is_offloaded: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """Parameters of a whole model, by how ranks hold them.

    Attributes:
        tensor: Of its layers, split by TP.
        replicated: Of its layers, on every rank.
        experts: Of routed experts, split by EP and ETP.
        embedding: One embedding matrix, split by TP.
        embeddings: How many of those.
        mtp_tensor: Of multi-token prediction, split by TP.
        mtp_replicated: Likewise, on every rank.
        mtp_experts: Likewise, of routed experts.
    """

    tensor: float
    replicated: float
    experts: float
    embedding: float
    embeddings: int
    mtp_tensor: float
    mtp_replicated: float
    mtp_experts: float

    @property
    def total(self) -> float:
        """All of them."""
        layers = self.tensor + self.replicated + self.experts
        return layers + self.mtp_tensor + self.mtp_replicated + self.mtp_experts + self.embedding * self.embeddings


def count_parameters(shape: Shape, tensor: int = 1) -> Parameters:
    """Parameters of a model whose vocabulary is padded for ``tensor`` ranks."""
    gate, hidden = (1.5 if shape.is_gated else 1.0), shape.hidden_size
    attention = _attention(shape)
    dense_mlp = 2 * hidden * shape.ffn_hidden_size * gate
    shared = 2 * hidden * shape.shared_expert_ffn * gate
    routed = 2 * hidden * shape.expert_ffn * shape.experts * gate
    norms = 2 * hidden * shape.norm_size
    moe_layers = shape.num_layers - shape.dense_layers if shape.experts else 0
    dense_layers = shape.num_layers - moe_layers
    router = hidden * shape.experts
    multiple = _VOCABULARY_MULTIPLE * tensor
    is_moe_mtp = bool(shape.experts)
    return Parameters(
        tensor=(attention + dense_mlp) * dense_layers + (attention + shared) * moe_layers,
        replicated=norms * shape.num_layers + router * moe_layers + shape.norm_size * hidden,
        experts=routed * moe_layers,
        embedding=hidden * math.ceil(shape.vocab_size / multiple) * multiple,
        embeddings=1 if shape.is_tied else 2,
        mtp_tensor=shape.mtp_layers * (attention + (shared if is_moe_mtp else dense_mlp)),
        mtp_replicated=shape.mtp_layers * (norms + (router if is_moe_mtp else 0)),
        mtp_experts=shape.mtp_layers * (routed if is_moe_mtp else 0),
    )


def _attention(shape: Shape) -> float:
    hidden, heads = shape.hidden_size, shape.heads
    if not shape.is_latent:
        return 2.0 * hidden * shape.kv_channels * (heads + shape.query_groups)
    query_width = heads * (shape.qk_head_dim + shape.qk_pos_emb_head_dim)
    query = shape.q_lora_rank * (hidden + query_width + shape.norm_size) if shape.q_lora_rank else hidden * query_width
    key_value = shape.kv_lora_rank * (hidden + heads * (shape.qk_head_dim + shape.v_head_dim) + shape.norm_size)
    return query + key_value + hidden * shape.qk_pos_emb_head_dim + heads * shape.v_head_dim * hidden


def estimate(shape: Shape | None, layout: Layout, training: Training, *, gpus: int, capacity_gib: float) -> Memory:
    """Bytes on the fullest GPU: that of the first pipeline stage.

    Args:
        shape: The model; None: not known.
        layout: Parallel sizes and batch.
        training: How it is trained.
        gpus: Ranks.
        capacity_gib: Memory of one GPU, GiB.
    """
    capacity = capacity_gib * GIB
    if shape is None or shape.is_hybrid:
        why = (
            "the model's sizes aren't known here: give its configuration, --hf-config config.json"
            if shape is None
            else "no theory for hybrid models, neither here nor in Megatron-LM's own estimate"
        )
        zero = {"weights": 0.0, "gradients": 0.0, "optimizer": 0.0, "activations": 0.0}
        return Memory(**zero, capacity=capacity, fit=Fit.UNKNOWN, why=why)
    dense, experts = _on_fullest(shape, layout)
    # Megatron-Core shards over data-parallel and context-parallel ranks; Megatron-LM's estimate knows only the former.
    data, expert_data = layout.data(gpus) * layout.context, max(1, gpus // layout.expert_ranks)
    spread = (data, expert_data) if training.is_fsdp else (1, 1)
    weights = 2 * (dense / spread[0] + experts / spread[1])
    if training.is_peft:
        trained = _adapters(shape, layout)
        gradients, optimizer = 4 * trained, 12 * trained / (data if training.is_sharded else 1)
    else:
        gradients = 2 * weights
        shards = (data, expert_data) if training.is_sharded or training.is_fsdp else (1, 1)
        optimizer = 12 * (dense / shards[0] + experts / shards[1])
    activations = _activations(shape, layout, training, gpus)
    share = (weights + gradients + optimizer + activations) / capacity
    fit = Fit.FITS if share <= _FITS else Fit.TIGHT if share <= _TIGHT else Fit.TOO_LARGE
    if training.is_offloaded and fit is not Fit.FITS:
        fit = Fit.UNKNOWN
    why = f"sizes from {shape.source}; theory without CUDA's own needs, so {_FITS:.0%} of the memory counts as full"
    if training.is_offloaded:
        why = f"the recipe offloads activations to the CPU, so theirs is the most they can be; {why}"
    return Memory(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=activations,
        capacity=capacity,
        fit=fit,
        why=why,
    )


def _on_fullest(shape: Shape, layout: Layout) -> tuple[float, float]:
    """Parameters on a rank of the first pipeline stage: those of dense layers, and of experts."""
    count = count_parameters(shape, layout.tensor)
    embeddings = count.embedding * (count.embeddings if layout.pipeline == 1 else 1)
    split = (count.tensor / layout.pipeline + count.mtp_tensor + embeddings) / layout.tensor
    dense = split + count.replicated / layout.pipeline + count.mtp_replicated
    experts = (count.experts / layout.pipeline + count.mtp_experts) / (layout.expert * layout.expert_tensor)
    return dense, experts


def _adapters(shape: Shape, layout: Layout) -> float:
    """Parameters of LoRA of rank 32 on attention and dense feed-forward layers, per rank."""
    attention = 2 * shape.hidden_size + shape.kv_channels * (2 * shape.heads + 2 * shape.query_groups)
    width = shape.top_k * shape.expert_ffn + shape.shared_expert_ffn if shape.experts else shape.ffn_hidden_size
    layer = _ADAPTER_RANK * (attention + 2 * shape.hidden_size + 3 * width)
    return layer * shape.num_layers / (layout.tensor * layout.pipeline)


def _activations(shape: Shape, layout: Layout, training: Training, gpus: int) -> float:
    tokens = training.sequence_length * layout.micro_batch / layout.context
    hidden, tensor, pipeline = shape.hidden_size, layout.tensor, layout.pipeline
    if shape.experts:
        width = (shape.top_k * shape.expert_ffn + shape.shared_expert_ffn) / hidden
    else:
        width = shape.ffn_hidden_size / hidden
    if layout.is_sequence_parallel:
        layer, factor = tokens * hidden * (18 + 4 * width) / tensor, 1.0
    else:  # Megatron-LM's figure without sequence parallelism is made for a width of 4 hidden sizes
        mlp = 4 * width if shape.experts else 16
        layer, factor = tokens * hidden * (10 + (8 + mlp) / tensor), 1.05
    rest = tokens * pipeline * (8 + hidden)
    split = tensor if layout.is_sequence_parallel else 1
    if training.recompute == "full":
        kept = 2 * tokens * hidden / split  # the input of each layer, and one layer as it is recomputed
        total = kept * shape.num_layers + layer + rest / split
    else:
        total = layer * shape.num_layers + rest / split
    microbatches = max(1, layout.global_batch // (layout.micro_batch * layout.data(gpus)))
    if layout.virtual:
        total *= 1 + (pipeline - 1) / (pipeline * layout.virtual)
    elif pipeline > 1:
        total *= min(1.0, microbatches / pipeline)
    if pipeline == 1:
        vocabulary = math.ceil(shape.vocab_size / (_VOCABULARY_MULTIPLE * tensor)) * _VOCABULARY_MULTIPLE * tensor
        if layout.is_sequence_parallel:
            total += tokens * hidden * 4 * (1 + vocabulary / hidden) / tensor
        else:
            total += 2 * tokens * (vocabulary / tensor + hidden)
    return total * factor
