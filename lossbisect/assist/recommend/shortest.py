"""The shortest run that still shows a change: which of lossbisect's recipes, and how many iterations of it. Pure.

What a recipe reaches is read from its own documentation, so that a new recipe is found without a change here.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lossbisect.train.recipes import Recipe, built_in_names, load_recipe

if TYPE_CHECKING:
    from lossbisect.parsers.runlog import ConfigValue

__all__ = ["Shortest", "recipe_for", "shortest_for_change", "shortest_for_settings"]

_WORD = re.compile(r"[a-z][a-z0-9]+")
_ITERATION = re.compile(r"iterations? (\d+)")
_ORDINARY = frozenset({
    "the", "and", "of", "to", "in", "is", "are", "it", "its", "that", "which", "from", "for", "with", "by", "on",
    "at", "as", "not", "no", "be", "what", "where", "how", "than", "one", "two", "more", "so", "megatron", "core",
    "py", "training", "transformer", "models", "model", "common", "real", "break", "would", "have", "caught",
    "reaches", "loss", "iteration", "commit", "fix", "change", "merge", "branch", "main", "into", "grad",
})  # fmt: skip
_SAME = {
    "mtp": "multi token prediction", "mla": "multi latent attention", "multilatent": "multi latent attention",
    "gqa": "grouped query attention", "tp": "tensor parallel ranks", "pp": "pipeline schedule stages",
    "pipeline": "pipeline schedule", "dist": "resume load", "checkpointing": "resume save load",
    "checkpoint": "resume save load", "finalize": "division number tokens end", "rotary": "rotary rope",
    "rope": "rotary rope", "aux": "load balancing", "optimizer": "optimizer decay decayed",
    "swiglu": "gated swiglu", "activations": "gated swiglu", "bfloat16": "bf16 bfloat16", "bf16": "bf16 bfloat16",
    "expert": "experts", "moe": "moe experts router",
}  # fmt: skip
_AFTER = 1
_NAME_WEIGHT = 3.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortest:
    """A recipe of lossbisect to bisect with.

    Attributes:
        recipe: Its name.
        iterations: Iterations after which the change shows; at most the recipe's own.
        recipe_iterations: Those of the recipe as it is.
        trainers: Those that can express it.
        why: What it reaches.
        others: Recipes that reach something of it too, best first.
    """

    recipe: str
    iterations: int
    recipe_iterations: int
    trainers: tuple[str, ...]
    why: str
    others: tuple[str, ...] = ()


def shortest_for_change(change: str) -> Shortest | None:
    """The recipe whose documentation has most to do with a change.

    Args:
        change: Words or paths, such as a commit's subject or ``megatron/core/transformer/moe/router.py``.

    Returns:
        None where no recipe's documentation mentions anything of it.
    """
    recipes = [load_recipe(name) for name in built_in_names() if name.endswith("-cpu")]
    said = {recipe.name: _words(f"{recipe.name} {recipe.description} {recipe.documentation}") for recipe in recipes}
    frequency = Counter(word for words in said.values() for word in words)
    asked = _words(change)
    files = _words(" ".join(word.rpartition("/")[2] for word in change.split() if "/" in word))
    asked |= {other for word in asked for other in _words(_SAME.get(word, ""))}

    def score(recipe: Recipe) -> float:
        named = _words(recipe.name.removesuffix("-cpu"))
        common = asked & said[recipe.name]
        rare = sum(math.log((len(recipes) + 1) / frequency[word]) * (3 if word in files else 1) for word in common)
        return rare + _NAME_WEIGHT * len(asked & named) / len(named) - len(said[recipe.name]) / 1000

    ranked = sorted(recipes, key=lambda recipe: (-score(recipe), len(recipe.name), recipe.name))
    good = [recipe for recipe in ranked if asked & said[recipe.name]]
    return _shortest(good[0], tuple(recipe.name for recipe in good[1:4])) if good else None


def shortest_for_settings(settings: "Mapping[str, ConfigValue]") -> Shortest:
    """The recipe that reaches the code that a run with these settings uses."""
    return _shortest(load_recipe(recipe_for(settings)), ())


def _shortest(recipe: Recipe, others: Sequence[str]) -> Shortest:
    seen = [int(number) for number in _ITERATION.findall(recipe.documentation)]
    seen += [recipe.restart_at + 1 if recipe.restart_at else 0, recipe.masked_microbatch_at]
    needed = max(seen)
    iterations = min(recipe.iterations, needed + _AFTER) if needed else recipe.iterations
    said = " ".join(recipe.documentation.split()) or recipe.description
    return Shortest(
        recipe=recipe.name,
        iterations=iterations,
        recipe_iterations=recipe.iterations,
        trainers=tuple(str(trainer) for trainer in recipe.trainers),
        why=said,
        others=tuple(others),
    )


def _words(text: str) -> set[str]:
    words = set(_WORD.findall(text.lower().replace("_", " "))) - _ORDINARY
    return {word.removesuffix("s") if len(word) > 4 else word for word in words}


def recipe_for(settings: "Mapping[str, ConfigValue]") -> str:
    """The built-in recipe that reaches the code that a run with these settings uses."""

    def get(name: str) -> "ConfigValue":
        return settings.get(name)

    rules: tuple[tuple[bool, str], ...] = (
        (bool(get("mtp_num_layers")), "mtp-cpu"),
        (bool(get("num_experts")) and get("moe_router_score_function") == "sigmoid", "moe-sigmoid-cpu"),
        (bool(get("num_experts")) and get("moe_router_load_balancing_type") == "seq_aux_loss", "moe-seq-aux-cpu"),
        (bool(get("num_experts")) and bool(get("moe_z_loss_coeff")), "moe-z-loss-cpu"),
        (bool(get("num_experts")) and bool(get("calculate_per_token_loss")), "moe-per-token-cpu"),
        (bool(get("num_experts")), "moe-cpu"),
        (bool(get("multi_latent_attention")), "mla-cpu"),
        (bool(get("hidden_dropout") or get("attention_dropout")), "dropout-cpu"),
        (_number(get("pipeline_model_parallel_size")) > 1, "pp2-cpu"),
        (_number(get("tensor_model_parallel_size")) > 1 and bool(get("sequence_parallel")), "sp2-cpu"),
        (_number(get("tensor_model_parallel_size")) > 1, "tp2-cpu"),
        (bool(get("qk_layernorm")) or get("num_query_groups") != get("num_attention_heads"), "gqa-cpu"),
        (get("position_embedding_type") == "rope" or get("normalization") == "RMSNorm", "llama-cpu"),
        (bool(get("use_distributed_optimizer")), "sharded-cpu"),
    )
    return next((name for applies, name in rules if applies), "vanilla-cpu")


def _number(value: "ConfigValue") -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
