"""Questions and answers of ``lossbisect recommend``."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["BridgeRecipe", "Effect", "Fit", "Goal", "Kind", "Layout", "Memory", "Override", "Question", "Shape", "Task"]


class Kind(StrEnum):
    """Which of Bridge's two sets of recipes."""

    LIBRARY = "library"
    """For training."""
    PERFORMANCE = "performance"
    """For throughput on mock data; the loss proves nothing."""


class Task(StrEnum):
    """What a recipe trains."""

    PRETRAIN = "pretrain"
    SFT = "sft"
    PEFT = "peft"


class Goal(StrEnum):
    """What the user is after."""

    PRETRAIN = "pretrain"
    SFT = "sft"
    PEFT = "peft"
    BENCHMARK = "benchmark"
    CORRELATION = "correlation"

    @property
    def task(self) -> Task:
        """The task of the recipes that serve it."""
        return {Goal.SFT: Task.SFT, Goal.PEFT: Task.PEFT}.get(self, Task.PRETRAIN)

    @property
    def kind(self) -> Kind:
        """The set of recipes that serves it."""
        return Kind.PERFORMANCE if self is Goal.BENCHMARK else Kind.LIBRARY


class Effect(StrEnum):
    """What an override touches."""

    CONVERGENCE = "changes convergence"
    EXECUTION = "execution only"


class Fit(StrEnum):
    """Whether a run fits into a GPU's memory."""

    FITS = "fits"
    TIGHT = "tight"
    TOO_LARGE = "won't fit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is asked.

    Attributes:
        model: Name, name and size, or Hugging Face id.
        gpus: GPUs in all.
        gpu_type: Such as ``h100``.
        per_node: GPUs of a node; None: what the type usually has.
        goal: What for.
        sequence_length: Tokens per sequence; None: the recipe's own.
        memory_gib: Memory of a GPU, in GiB; None: what the type has.
        tensor: Tensor-parallel size that is insisted on; None: none.
    """

    model: str
    gpus: int
    gpu_type: str = "h100"
    per_node: int | None = None
    goal: Goal = Goal.PRETRAIN
    sequence_length: int | None = None
    memory_gib: float | None = None
    tensor: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BridgeRecipe:
    """A recipe function of Bridge, as its name describes it.

    Attributes:
        kind: Which set it belongs to.
        name: The function.
        module: The module that defines it.
        model: The model, such as ``llama3_8b``.
        task: What it trains.
        gpus: GPUs that it was made for; None where its name doesn't say.
        hardware: GPU type that it was made for, such as ``h100``; None likewise.
        precision: Such as ``bf16`` or ``fp8mx``; None likewise.
        variant: What else its name says, such as ``16k``; empty for the plain one.
        aliases: Other names under which it is exported.
    """

    kind: Kind
    name: str
    module: str
    model: str
    task: Task
    gpus: int | None
    hardware: str | None
    precision: str | None
    variant: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Parallel sizes (ranks) and batch (sequences).

    Attributes:
        tensor: TP.
        pipeline: PP.
        virtual: VP, chunks of layers per pipeline stage; None: one.
        context: CP.
        expert: EP.
        expert_tensor: ETP.
        is_sequence_parallel: SP.
        micro_batch: Sequences per forward pass and rank.
        global_batch: Sequences per iteration.
    """

    tensor: int = 1
    pipeline: int = 1
    virtual: int | None = None
    context: int = 1
    expert: int = 1
    expert_tensor: int = 1
    is_sequence_parallel: bool = False
    micro_batch: int = 1
    global_batch: int = 1

    @property
    def dense_ranks(self) -> int:
        """Ranks of one replica of the dense layers."""
        return self.tensor * self.pipeline * self.context

    @property
    def expert_ranks(self) -> int:
        """Ranks of one replica of the experts."""
        return self.expert * self.expert_tensor * self.pipeline

    @property
    def least_world(self) -> int:
        """Ranks below which neither mesh is whole."""
        return self.pipeline * max(self.tensor * self.context, self.expert * self.expert_tensor)

    def data(self, gpus: int) -> int:
        """DP of the dense layers."""
        return max(1, gpus // self.dense_ranks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A model's size, in Megatron-Core's terms.

    Attributes:
        name: The model.
        source: Where the figures are from.
        num_layers: Transformer layers.
        hidden_size: Width of the residual stream.
        ffn_hidden_size: Width of a dense feed-forward layer.
        heads: Attention heads.
        query_groups: Key-value heads.
        kv_channels: Width of a head.
        vocab_size: Tokens.
        is_tied: Input and output embeddings are one matrix.
        is_gated: The feed-forward layers are gated (SwiGLU).
        experts: Experts of an MoE layer; 0: dense.
        expert_ffn: Width of an expert.
        shared_expert_ffn: Width of the shared expert; 0: none.
        top_k: Experts that a token is sent to.
        dense_layers: Leading layers without experts in an MoE model.
        mtp_layers: Layers of multi-token prediction.
        is_latent: Multi-latent attention, of the ranks below.
        q_lora_rank: Rank of the queries; 0: none.
        kv_lora_rank: Rank of keys and values.
        qk_head_dim: Width of a query head without positions.
        qk_pos_emb_head_dim: Its width with positions.
        v_head_dim: Width of a value head.
        norm_size: 1 for RMSNorm, 2 for LayerNorm (weight and bias).
        is_hybrid: Mamba or linear-attention layers stand beside attention.
    """

    name: str
    source: str
    num_layers: int
    hidden_size: int
    ffn_hidden_size: int
    heads: int
    query_groups: int
    kv_channels: int
    vocab_size: int
    is_tied: bool = False
    is_gated: bool = True
    experts: int = 0
    expert_ffn: int = 0
    shared_expert_ffn: int = 0
    top_k: int = 0
    dense_layers: int = 0
    mtp_layers: int = 0
    is_latent: bool = False
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_head_dim: int = 0
    qk_pos_emb_head_dim: int = 0
    v_head_dim: int = 0
    norm_size: int = 1
    is_hybrid: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes of the fullest GPU, by theory.

    Attributes:
        weights: Parameters.
        gradients: Their gradients.
        optimizer: Main parameters and Adam's two moments.
        activations: What the backward pass needs of the forward pass.
        capacity: Memory of the GPU.
        fit: The judgement.
        why: What was assumed, in one sentence.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    capacity: float
    fit: Fit
    why: str

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """One setting that differs from the recipe's own.

    Attributes:
        setting: Such as ``model.tensor_model_parallel_size``.
        value: As it is written on the command line.
        was: The recipe's own.
        effect: What it touches.
        why: The rule behind it.
    """

    setting: str
    value: str
    was: str
    effect: Effect
    why: str
