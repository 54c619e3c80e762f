"""Correlation recipes: short training configurations in neutral terms, one TOML file each.

A recipe names what both trainers must agree on for their losses to be comparable; `lossbisect.train.render` says it in
the words of each. Fields with a default have the one that both trainers share.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from lossbisect.errors import RecipeError
from lossbisect.train.types import TrainerName

__all__ = [
    "Activation",
    "LoadBalancing",
    "Normalization",
    "PositionEmbedding",
    "Precision",
    "Recipe",
    "RouterScore",
    "Schedule",
    "built_in_names",
    "load_recipe",
    "recipe_file",
]

_FOLDER = Path(__file__).parent


class Precision(StrEnum):
    """Number format of parameters and arithmetic."""

    FP32 = "fp32"
    BF16 = "bf16"


class Schedule(StrEnum):
    """Shape of the learning rate after warm-up."""

    COSINE = "cosine"
    LINEAR = "linear"
    CONSTANT = "constant"


class PositionEmbedding(StrEnum):
    """How a token's place reaches the model."""

    LEARNED = "learned"
    ROPE = "rope"


class Normalization(StrEnum):
    """Norm before attention and feed-forward layers."""

    LAYER_NORM = "layernorm"
    RMS_NORM = "rmsnorm"


class Activation(StrEnum):
    """Activation of the feed-forward layers."""

    GELU = "gelu"
    SWIGLU = "swiglu"


class LoadBalancing(StrEnum):
    """Auxiliary loss that spreads tokens over experts."""

    AUX_LOSS = "aux_loss"
    SEQ_AUX_LOSS = "seq_aux_loss"
    NONE = "none"


class RouterScore(StrEnum):
    """What turns a router's logits into scores."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A short training configuration.

    Attributes:
        name: The built-in name, or the file's path.
        description: One line for a person.
        documentation: What code it reaches, and which real break it would have caught.
        trainers: Those that can express it.
        layers: Transformer layers.
        hidden_size: Width of the residual stream.
        attention_heads: Heads; divides ``hidden_size``.
        ffn_hidden_size: Width of the feed-forward layers.
        sequence_length: Tokens per sequence.
        vocabulary_size: Tokens of the null tokenizer, before its extra token and padding.
        hidden_dropout: Probability after attention and feed-forward layers.
        attention_dropout: Probability on attention weights.
        iterations: Iterations to train.
        micro_batch_size: Sequences per forward pass and rank.
        global_batch_size: Sequences per iteration.
        seed: Seed of initialisation and data.
        precision: Number format.
        lr: Largest learning rate.
        min_lr: Learning rate after the decay.
        lr_schedule: Shape of the decay.
        lr_warmup_iterations: Iterations of linear warm-up; fewer than ``lr_decay_iterations``.
        lr_decay_iterations: Iteration at which ``min_lr`` is reached.
        weight_decay: Constant decoupled weight decay.
        adam_beta1: Adam's first moment coefficient.
        adam_beta2: Adam's second moment coefficient.
        adam_eps: Adam's epsilon.
        clip_grad: Largest global gradient norm.
        decoupled_lr: Largest learning rate of the input and output embeddings; 0: that of all.
        decoupled_min_lr: Their learning rate after the decay.
        embedding_init_std: Standard deviation of the embeddings' first values, which also spares them the weight decay;
            0: that of all, and decayed.
        restart_at: After this iteration the run is saved, and goes on in a new process that loads it; 0: never.
        mask_end_of_document: Tokens that end a document don't count in the loss.
        masked_microbatch_at: Iteration whose last microbatch doesn't count in the loss at all; 0: none.
        position_embedding: How a token's place reaches the model.
        normalization: Norm before attention and feed-forward layers.
        activation: Activation of the feed-forward layers.
        tied_embeddings: Input and output embeddings are one matrix.
        linear_bias: Linear layers have a bias.
        query_groups: Key-value heads of grouped-query attention; 0: as many as heads.
        qk_layernorm: Queries and keys are normalised.
        multi_latent_attention: Keys and values go through a low rank, at the ranks that Megatron-Core has by default.
        per_token_loss: The loss is summed over tokens and divided by their number at the end of an iteration.
        distributed_optimizer: The optimizer's state is sharded over data-parallel ranks.
        experts: Experts of each MoE layer; 0: a dense model.
        experts_per_token: Experts that a token is sent to.
        expert_ffn_hidden_size: Width of an expert; 0: ``ffn_hidden_size``.
        load_balancing: Auxiliary loss that spreads tokens over experts.
        aux_loss_coefficient: Its weight.
        z_loss_coefficient: Weight of the loss on the router's logits; 0: none.
        router_score: What turns the router's logits into scores.
        expert_bias: The router has a bias that is moved towards an even load.
        mtp_layers: Layers of multi-token prediction; 0: none.
        tensor_parallel: Ranks that share each layer.
        pipeline_parallel: Ranks that share the layers among them.
        sequence_parallel: Tensor-parallel ranks also share the sequence outside attention and feed-forward layers.
    """

    name: str
    description: str
    layers: int
    hidden_size: int
    attention_heads: int
    ffn_hidden_size: int
    sequence_length: int
    vocabulary_size: int
    hidden_dropout: float
    attention_dropout: float
    iterations: int
    micro_batch_size: int
    global_batch_size: int
    seed: int
    precision: Precision
    lr: float
    min_lr: float
    lr_schedule: Schedule
    lr_warmup_iterations: int
    lr_decay_iterations: int
    weight_decay: float
    adam_beta1: float
    adam_beta2: float
    adam_eps: float
    clip_grad: float
    documentation: str = ""
    trainers: tuple[TrainerName, ...] = tuple(TrainerName)
    decoupled_lr: float = 0.0
    decoupled_min_lr: float = 0.0
    embedding_init_std: float = 0.0
    restart_at: int = 0
    mask_end_of_document: bool = False
    masked_microbatch_at: int = 0
    position_embedding: PositionEmbedding = PositionEmbedding.LEARNED
    normalization: Normalization = Normalization.LAYER_NORM
    activation: Activation = Activation.GELU
    tied_embeddings: bool = True
    linear_bias: bool = True
    query_groups: int = 0
    qk_layernorm: bool = False
    multi_latent_attention: bool = False
    per_token_loss: bool = False
    distributed_optimizer: bool = False
    experts: int = 0
    experts_per_token: int = 2
    expert_ffn_hidden_size: int = 0
    load_balancing: LoadBalancing = LoadBalancing.AUX_LOSS
    aux_loss_coefficient: float = 0.0
    z_loss_coefficient: float = 0.0
    router_score: RouterScore = RouterScore.SOFTMAX
    expert_bias: bool = False
    mtp_layers: int = 0
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    sequence_parallel: bool = False

    @property
    def ranks(self) -> int:
        """Processes that a run needs."""
        return self.tensor_parallel * self.pipeline_parallel


def built_in_names() -> tuple[str, ...]:
    """Names of the recipes that come with lossbisect, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def recipe_file(name: str) -> Path:
    """The file of a built-in recipe, or the path that the name is."""
    return _FOLDER / f"{name}.toml" if name in built_in_names() else Path(name)


def load_recipe(name: str) -> Recipe:
    """The built-in recipe of that name, or the one in the file at that path.

    A file may begin with ``extends = "NAME"``: it then says only what differs from that built-in recipe.

    Raises:
        RecipeError: There is no such recipe, or its file lacks a field, has one too many, or one of the wrong kind.
    """
    file = recipe_file(name)
    values = _values(file)
    while "extends" in values:
        base = values.pop("extends")
        if base not in built_in_names():
            raise RecipeError(f"{file}: extends = {base!r}: one of {', '.join(built_in_names())}")
        values = _values(recipe_file(str(base))) | values  # with the base's own base, if it has one
    recipe = _recipe({"description": "", **values, "name": name}, file)
    _check(recipe, file)
    return recipe


def _values(file: Path) -> dict[str, Any]:
    """Fields of all tables; the tables only group them for the reader."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(
            f"{file}: neither a built-in recipe ({', '.join(built_in_names())}) nor a readable file"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{file}: not TOML: {error}") from error
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= value if isinstance(value, dict) else {key: value}
    return flat


def _recipe(values: Mapping[str, Any], file: Path) -> Recipe:
    kinds = get_type_hints(Recipe)
    known = {field.name: field.default for field in fields(Recipe)}
    missing = [name for name, default in known.items() if default is MISSING and name not in values]
    unknown = [name for name in values if name not in known]
    if missing or unknown:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"unknown: {', '.join(unknown)}"] if unknown else []
        raise RecipeError(f"{file}: {'; '.join(parts)}. See a built-in recipe for the fields.")
    return Recipe(**{name: _typed(value, kinds[name], name, file) for name, value in values.items()})


def _typed(value: Any, kind: Any, field: str, file: Path) -> Any:
    if get_origin(kind) is tuple:
        if not isinstance(value, list) or not value:
            raise RecipeError(f"{file}: {field} = {value!r}: a list with something in it is needed")
        return tuple(_typed(item, get_args(kind)[0], field, file) for item in value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if issubclass(kind, StrEnum):
        try:
            return kind(value)
        except ValueError:
            raise RecipeError(f"{file}: {field} = {value!r}: one of {', '.join(kind)}") from None
    if type(value) is not kind:
        raise RecipeError(f"{file}: {field} = {value!r}: a value of type {kind.__name__} is needed")
    return value


_POSITIVE = (
    "layers", "hidden_size", "attention_heads", "ffn_hidden_size", "sequence_length", "vocabulary_size", "iterations",
    "micro_batch_size", "global_batch_size", "lr", "tensor_parallel", "pipeline_parallel",
)  # fmt: skip
_MULTIPLES = (
    ("hidden_size", "attention_heads"),
    ("global_batch_size", "micro_batch_size"),
    ("attention_heads", "query_groups"),
    ("attention_heads", "tensor_parallel"),
    ("layers", "pipeline_parallel"),
)


_ONLY_CORE = ("masked_microbatch_at",)
"""Fields that no command line reaches."""


def _check(recipe: Recipe, file: Path) -> None:
    """Refuse what no trainer could run, with the field's name rather than a trainer's assertion."""
    for field in _POSITIVE:
        if getattr(recipe, field) <= 0:
            raise RecipeError(f"{file}: {field} = {getattr(recipe, field)}: must be greater than 0")
    for whole, part in _MULTIPLES:
        if getattr(recipe, part) and getattr(recipe, whole) % getattr(recipe, part):
            raise RecipeError(
                f"{file}: {whole} {getattr(recipe, whole)} isn't a multiple of {part} {getattr(recipe, part)}"
            )
    if not 0 <= recipe.lr_warmup_iterations < recipe.lr_decay_iterations:
        raise RecipeError(
            f"{file}: lr_warmup_iterations {recipe.lr_warmup_iterations} must be less than "
            f"lr_decay_iterations {recipe.lr_decay_iterations}"
        )
    for field in ("restart_at", "masked_microbatch_at"):
        if not 0 <= getattr(recipe, field) < recipe.iterations:
            raise RecipeError(f"{file}: {field} {getattr(recipe, field)} must be less than iterations")
    if recipe.restart_at and recipe.ranks > 1:
        raise RecipeError(f"{file}: restart_at needs one rank, not {recipe.ranks}")
    for field in _ONLY_CORE:
        if getattr(recipe, field) and recipe.trainers != (TrainerName.CORE,):
            raise RecipeError(f'{file}: {field}: only one trainer knows it; add trainers = ["core"]')
    if recipe.experts and not 0 < recipe.experts_per_token <= recipe.experts:
        raise RecipeError(
            f"{file}: experts_per_token {recipe.experts_per_token} must be between 1 and experts {recipe.experts}"
        )
