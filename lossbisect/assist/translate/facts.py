"""What the Megatron-LM and the Bridge at hand have, read from their sources."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lossbisect.assist.translate.arguments import read_arguments
from lossbisect.assist.translate.source import Made, Sources, Unread, Value
from lossbisect.assist.translate.types import Facts
from lossbisect.errors import RecipeError

__all__ = ["BASE_RECIPE", "read_facts", "settings_of"]

BASE_RECIPE = "vanilla_gpt_pretrain_config"
"""The recipe that overrides are for: Bridge's own counterpart of ``pretrain_gpt.py``."""

_RECIPES = "megatron.bridge.recipes.gpt.vanilla_gpt"
_SUBMODULE = "3rdparty/Megatron-LM"


@cache
def read_facts(repo: Path | None = None) -> Facts:
    """Both trainers' arguments, settings and defaults.

    Args:
        repo: A Bridge checkout with its submodule; None: the packages installed beside lossbisect.

    Raises:
        RecipeError: One of the two isn't there.
    """
    sources = Sources(_roots(repo))
    arguments = read_arguments(sources)
    base = sources.call(_RECIPES, BASE_RECIPE)
    where = str(repo) if repo else "this Python environment"
    missing = [] if arguments else ["Megatron-LM (megatron.training)"]
    missing += [] if isinstance(base, Made) else [f"Bridge with the recipe {BASE_RECIPE}"]
    if missing or not isinstance(base, Made):
        raise RecipeError(
            f"{where}: there is no {' and no '.join(missing)}, whose arguments are to be read. "
            "Name a Bridge checkout with its submodule: --repo PATH."
        )
    return Facts(sources=sources, arguments=arguments, base=settings_of(base), recipe=BASE_RECIPE)


def _roots(repo: Path | None) -> list[Path]:
    if repo is not None:
        return [repo / "src", repo / _SUBMODULE, repo]
    spec = find_spec("megatron")
    return [Path(place).parent for place in (spec.submodule_search_locations or [])] if spec else []


def settings_of(config: Made) -> dict[str, Value]:
    """A configuration's values by dotted key, or by section for one that is empty."""
    settings: dict[str, Value] = {}
    for section, value in config.values.items():
        if isinstance(value, Made):
            settings |= {f"{section}.{name}": _named(inner) for name, inner in value.values.items()}
        else:
            settings[section] = value
    return settings


def _named(value: Value) -> Value:
    """A function of torch by its short name, as an override names it; an empty mapping as no items."""
    if isinstance(value, Unread) and value.text.startswith("F."):
        return value.text[2:]
    if isinstance(value, Unread) and value.text == "dict()":
        return []
    return value
