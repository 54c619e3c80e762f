"""Suites: several recipes under one name, one TOML file each.

Their runs follow one another through warm parents, each in a process of its own. One process for all of them would save
a few seconds of imports a recipe, and share what Megatron-Core keeps in its modules: random number trackers, process
groups, loss trackers. A run that may depend on the run before it is no proof of anything.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from lossbisect.errors import RecipeError
from lossbisect.train.recipes import load_recipe
from lossbisect.train.types import TrainerName

__all__ = ["Suite", "built_in_suites", "load_suite"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite:
    """Recipes that are run together.

    Attributes:
        name: The built-in name, or the file's path.
        description: One line for a person.
        recipes: Names of built-in recipes, or paths of recipe files, in the order in which they run.
    """

    name: str
    description: str
    recipes: tuple[str, ...]

    def check(self, trainer: TrainerName) -> None:
        """Find out before the first run that a later one couldn't start.

        Raises:
            RecipeError: A recipe can't be read, or the trainer can't express it.
        """
        for name in self.recipes:
            recipe = load_recipe(name)
            if trainer not in recipe.trainers:
                raise RecipeError(
                    f"suite {self.name}: {trainer} can't express {name}. Use --trainer {' or '.join(recipe.trainers)}."
                )


def built_in_suites() -> tuple[str, ...]:
    """Names of the suites that come with lossbisect, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def load_suite(name: str) -> Suite:
    """The built-in suite of that name, or the one in the file at that path.

    Raises:
        RecipeError: There is no such suite, or its file isn't ``description = "…"`` and ``recipes = ["…", …]``.
    """
    file = _FOLDER / f"{name}.toml" if name in built_in_suites() else Path(name)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(built_in_suites())
        raise RecipeError(f"{file}: neither a built-in suite ({known}) nor a readable file") from error
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{file}: not TOML: {error}") from error
    if unknown := values.keys() - {"description", "recipes"}:
        raise RecipeError(f"{file}: unknown: {', '.join(sorted(unknown))}. A suite has a description and recipes.")
    recipes = values.get("recipes")
    if not isinstance(recipes, list) or not recipes or not all(isinstance(each, str) for each in recipes):
        raise RecipeError(f'{file}: recipes = {recipes!r}: a list of names is needed, such as ["vanilla-cpu"]')
    return Suite(name=name, description=str(values.get("description", "")), recipes=tuple(recipes))
