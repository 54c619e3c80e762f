"""Correlation recipes: short training configurations in neutral terms, one TOML file each.

A recipe names what both trainers must agree on for their losses to be comparable; `lossbisect.train.render` says it
in the words of each. Nothing is left to a default that the two trainers may not share.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, get_type_hints

from lossbisect.errors import RecipeError

__all__ = ["Precision", "Recipe", "Schedule", "built_in_names", "load_recipe"]

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A short training configuration.

    Attributes:
        name: The built-in name, or the file's path.
        description: One line for a person.
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


def built_in_names() -> tuple[str, ...]:
    """Names of the recipes that come with lossbisect, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def load_recipe(name: str) -> Recipe:
    """The built-in recipe of that name, or the one in the file at that path.

    Raises:
        RecipeError: There is no such recipe, or its file lacks a field, has one too many, or one of the wrong kind.
    """
    file = _FOLDER / f"{name}.toml" if name in built_in_names() else Path(name)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(
            f"{name}: neither a built-in recipe ({', '.join(built_in_names())}) nor a readable file"
        ) from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{file}: not TOML: {error}") from error
    recipe = _from_tables(name, tables, file)
    _check(recipe, file)
    return recipe


def _flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of all tables; the tables only group them for the reader."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= value if isinstance(value, dict) else {key: value}
    return flat


def _from_tables(name: str, tables: Mapping[str, Any], file: Path) -> Recipe:
    values = {"description": "", **_flat(tables), "name": name}
    kinds = get_type_hints(Recipe)
    known = [field.name for field in fields(Recipe)]
    missing = [field for field in known if field not in values]
    unknown = [field for field in values if field not in known]
    if missing or unknown:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"unknown: {', '.join(unknown)}"] if unknown else []
        raise RecipeError(f"{file}: {'; '.join(parts)}. See a built-in recipe for the fields.")
    return Recipe(**{field: _typed(values[field], kinds[field], field, file) for field in known})


def _typed(value: Any, kind: type, field: str, file: Path) -> Any:
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


def _check(recipe: Recipe, file: Path) -> None:
    """Refuse what neither trainer could run, with the field's name rather than a trainer's assertion."""
    positive = ("layers", "hidden_size", "attention_heads", "ffn_hidden_size", "sequence_length", "vocabulary_size",
                "iterations", "micro_batch_size", "global_batch_size", "lr")  # fmt: skip
    for field in positive:
        if getattr(recipe, field) <= 0:
            raise RecipeError(f"{file}: {field} = {getattr(recipe, field)}: must be greater than 0")
    if recipe.hidden_size % recipe.attention_heads:
        raise RecipeError(
            f"{file}: hidden_size {recipe.hidden_size} isn't a multiple of attention_heads {recipe.attention_heads}"
        )
    if recipe.global_batch_size % recipe.micro_batch_size:
        raise RecipeError(
            f"{file}: global_batch_size {recipe.global_batch_size} isn't a multiple of "
            f"micro_batch_size {recipe.micro_batch_size}"
        )
    if not 0 <= recipe.lr_warmup_iterations < recipe.lr_decay_iterations:
        raise RecipeError(
            f"{file}: lr_warmup_iterations {recipe.lr_warmup_iterations} must be less than "
            f"lr_decay_iterations {recipe.lr_decay_iterations}"
        )
