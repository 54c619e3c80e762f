"""What is trained at each commit: ``lossbisect.toml``."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from lossbisect.errors import RecipeError
from lossbisect.train.defaults import DEFAULT_RECIPES
from lossbisect.train.recipes import load_recipe
from lossbisect.train.types import Lane, TrainerName
from lossbisect.triage.types import Case

__all__ = ["FILE_NAME", "default_cases", "load_cases"]

FILE_NAME = "lossbisect.toml"
_KEYS = frozenset({"recipe", "lane", "trainer", "repeats", "tolerance", "metric", "owners"})
_MOST_REPEATS = 64


def default_cases() -> tuple[Case, ...]:
    """What is trained where nobody said what: the built-in recipe of the lane cpu."""
    return (Case(recipe=DEFAULT_RECIPES[Lane.CPU]),)


def load_cases(file: Path) -> tuple[Case, ...]:
    """The cases of a suite's file: ``[[triage]]`` tables, paths of recipes relative to it.

    Raises:
        RecipeError: The file can't be read, isn't TOML, or says what isn't understood; the message says where.
    """
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{file}: can't be read: {error}. Name another one by --suite FILE.") from error
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{file}: not TOML: {error}") from error
    tables = values.get("triage")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise RecipeError(f'{file}: no [[triage]] table. Write one for each training, such as: recipe = "vanilla-cpu"')
    return tuple(_case(file, number, table) for number, table in enumerate(tables, start=1))


def _case(file: Path, number: int, table: dict[str, Any]) -> Case:
    place = f"{file}: [[triage]] number {number}"
    if unknown := table.keys() - _KEYS:
        raise RecipeError(f"{place}: unknown: {', '.join(sorted(unknown))}. Known: {', '.join(sorted(_KEYS))}.")
    try:
        lane = Lane(table.get("lane", "cpu"))
        case = Case(
            recipe=str(table.get("recipe", DEFAULT_RECIPES[lane])),
            lane=lane,
            trainer=TrainerName(table["trainer"]) if "trainer" in table else None,
            repeats=int(table.get("repeats", 2)),
            tolerance=float(table.get("tolerance", 0.0)),
            metric=str(table.get("metric", "lm_loss")),
            owners=tuple(map(str, table.get("owners", ()))),
        )
    except (TypeError, ValueError) as error:
        raise RecipeError(f"{place}: {error}") from error
    if not 2 <= case.repeats <= _MOST_REPEATS:
        raise RecipeError(f"{place}: repeats = {case.repeats}: from 2 to {_MOST_REPEATS}.")
    if not 0 <= case.tolerance < 1:
        raise RecipeError(f"{place}: tolerance = {case.tolerance}: a relative difference, from 0 to below 1.")
    beside = file.parent / case.recipe
    case = replace(case, recipe=str(beside.absolute())) if beside.is_file() else case
    load_recipe(case.recipe)
    return case
