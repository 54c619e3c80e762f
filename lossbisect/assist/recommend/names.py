"""Which of Bridge's models a user means. Pure but for the sources it is handed."""

import difflib
import re
from collections.abc import Iterable, Sequence

from lossbisect.assist.recommend.catalogue import read_settings
from lossbisect.assist.recommend.source import BridgeSource
from lossbisect.assist.recommend.types import BridgeRecipe
from lossbisect.errors import LossbisectError

__all__ = ["find_model"]

_DECORATION = re.compile(r"\b(instruct|hf|base|chat|it|pt|bf16|nvidia|meta|google|config|recipe|\d{4})\b")
_SMALL = re.compile(r"\b0\.(\d)b\b")
_BETWEEN = re.compile(r"(?<=\d)p(?=\d)")


def find_model(source: BridgeSource, recipes: Sequence[BridgeRecipe], asked: str) -> str:
    """The name in Bridge's recipes of the model that a user names, by any of its names.

    Args:
        source: Bridge's sources, for Hugging Face ids.
        recipes: All recipes.
        asked: Name, name and size, or Hugging Face id.

    Raises:
        LossbisectError: There is none, or several; the message names those that are near.
    """
    models = sorted({recipe.model for recipe in recipes})
    if "/" in asked:
        found = _by_id(source, recipes, asked)
        if found:
            return found
    keys = {_key(model): model for model in models}
    wanted = _key(asked)
    if not wanted:
        raise LossbisectError("No model named. Name one, such as llama3_8b; 'lossbisect recommend --list' lists them.")
    if wanted in keys:
        return keys[wanted]
    beginning = [model for key, model in keys.items() if key.startswith(wanted)]
    if len(beginning) == 1:
        return beginning[0]
    if beginning:
        raise LossbisectError(f"{asked!r} is several models: {_some(beginning)}. Name one of them.")
    longer = [key for key in keys if wanted.startswith(key)]
    if longer:  # 'nemotron-3-nano-30b-a3b' says more than the recipe's name does
        return keys[max(longer, key=len)]
    inside = [model for key, model in keys.items() if wanted in key]
    if len(inside) == 1:
        return inside[0]
    if inside:
        raise LossbisectError(f"{asked!r} is several models: {_some(inside)}. Name one of them.")
    near = difflib.get_close_matches(wanted, keys, n=3, cutoff=0.4)
    told = _some([keys[key] for key in near]) if near else _some(models)
    raise LossbisectError(f"{source.told} has no recipe for {asked!r}. The nearest: {told}.")


def _by_id(source: BridgeSource, recipes: Iterable[BridgeRecipe], asked: str) -> str | None:
    for recipe in recipes:
        if source.mentions(recipe.module, asked):
            reading = read_settings(source, recipe)
            if reading and reading.model_id and reading.model_id.lower() == asked.lower():
                return recipe.model
    return None


def _key(name: str) -> str:
    """A name without what people write differently: ``Qwen3-0.6B`` and ``qwen3_600m`` are the same."""
    text = name.lower().rpartition("/")[2].replace("_", " ").replace("-", " ")
    text = _DECORATION.sub("", _SMALL.sub(r"\g<1>00m", text))
    return _BETWEEN.sub("", re.sub(r"[^a-z0-9]", "", text))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
