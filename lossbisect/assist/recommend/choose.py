"""The recipe that a question is nearest to."""

import math
from collections.abc import Sequence

from lossbisect.assist.recommend.catalogue import Reading, read_settings
from lossbisect.assist.recommend.source import BridgeSource
from lossbisect.assist.recommend.types import BridgeRecipe, Goal, Kind, Question, Task
from lossbisect.errors import LossbisectError

__all__ = ["nearest_recipe"]

_READ_AT_MOST = 8
_USUAL_LENGTH = 4096


def nearest_recipe(
    source: BridgeSource, recipes: Sequence[BridgeRecipe], model: str, question: Question
) -> tuple[BridgeRecipe, Reading]:
    """The recipe of that model whose purpose, length, GPU type and GPU count are nearest to the question.

    Raises:
        LossbisectError: Bridge has none for that model and goal; the message says what it has.
    """
    of_model = [recipe for recipe in recipes if recipe.model == model]
    goal = question.goal
    kept = [recipe for recipe in of_model if recipe.kind is goal.kind and recipe.task is goal.task]
    kept.sort(key=lambda recipe: _by_name(recipe, question))
    read = [(recipe, reading) for recipe in kept[:_READ_AT_MOST] if (reading := read_settings(source, recipe))]
    if not read:
        raise LossbisectError(_has_none(source, recipes, of_model, model, goal, is_empty=bool(kept)))
    return min(read, key=lambda pair: _by_body(pair[0], pair[1], question))


def _by_name(recipe: BridgeRecipe, question: Question) -> tuple[float, ...]:
    length = question.sequence_length
    long = _length_in(recipe.variant)
    return (
        recipe.precision not in ("bf16", None),
        abs(math.log2(length / long)) if long and length else (1.0 if long else 0.0),
        _oddness(recipe, question),
        recipe.hardware != question.gpu_type,
        _distance(recipe.gpus or 1, question.gpus),
    )


def _by_body(recipe: BridgeRecipe, reading: Reading, question: Question) -> tuple[float, ...]:
    length = reading.sequence_length or _USUAL_LENGTH
    return (
        recipe.precision not in ("bf16", None),
        _distance(length, question.sequence_length)
        if question.sequence_length
        else float(bool(_length_in(recipe.variant))),
        _oddness(recipe, question),
        recipe.hardware != question.gpu_type,
        _distance(recipe.gpus or 1, question.gpus),
    )


def _oddness(recipe: BridgeRecipe, question: Question) -> float:
    """A variant that nobody asked for, such as another optimizer or data set, comes after the plain one."""
    rest = [word for word in recipe.variant.split("_") if word and not _length_in(word) and not word.endswith("nodes")]
    if "deterministic" in rest and question.goal is Goal.CORRELATION:
        return -1.0
    return float(len(rest))


def _length_in(variant: str) -> int | None:
    """The sequence length that a name carries: ``16k`` is 16384."""
    words = [word[:-1] for word in variant.split("_") if word.endswith("k") and word[:-1].isdecimal()]
    return int(words[0]) * 1024 if words else None


def _distance(one: int, other: int) -> float:
    return abs(math.log2(one / other))


def _has_none(
    source: BridgeSource,
    recipes: Sequence[BridgeRecipe],
    of_model: Sequence[BridgeRecipe],
    model: str,
    goal: Goal,
    *,
    is_empty: bool,
) -> str:
    has = sorted({_goal(recipe) for recipe in of_model if not (recipe.kind is goal.kind and recipe.task is goal.task)})
    others = sorted({recipe.model for recipe in recipes if recipe.kind is goal.kind and recipe.task is goal.task})
    family = [other for other in others if other[:4] == model[:4]] or others
    why = f"{source.told} has {'only an unfinished' if is_empty else 'no'} {goal} recipe for {model}"
    return f"{why}. It has for it: {', '.join(has) or 'none'}; and for {goal}: {', '.join(family[:6])}."


def _goal(recipe: BridgeRecipe) -> str:
    if recipe.kind is Kind.LIBRARY:
        return str(recipe.task)
    return "benchmark" if recipe.task is Task.PRETRAIN else f"benchmark of {recipe.task}"
