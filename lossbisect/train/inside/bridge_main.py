"""Train a Bridge recipe from the installed ``megatron.bridge``, for set-ups without a checkout's ``run_recipe.py``.

    python -m lossbisect.train.inside.bridge_main RECIPE KEY=VALUE...

It takes the same recipe names and overrides as Bridge's ``scripts/training/run_recipe.py``.
"""

import importlib
import sys
from typing import Any

__all__: list[str] = []


def _recipe(name: str) -> Any:
    recipes = importlib.import_module("megatron.bridge.recipes")
    for module in (recipes, *(_family(f"megatron.bridge.recipes.{family}") for family in ("gpt.vanilla_gpt", "gpt"))):
        if hasattr(module, name):
            return getattr(module, name)()
    raise SystemExit(f"megatron.bridge.recipes has no recipe {name!r}")


def _family(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def main(arguments: list[str]) -> None:
    """Build the configuration, apply the overrides, train."""
    name, *overrides = arguments
    configuration = _recipe(name)

    from megatron.bridge.training.gpt_step import forward_step
    from megatron.bridge.training.pretrain import pretrain
    from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides

    process_config_with_overrides(configuration, cli_overrides=overrides)
    pretrain(configuration, forward_step)


if __name__ == "__main__":
    main(sys.argv[1:])
