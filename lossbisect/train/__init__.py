"""Running a recipe: both trainers, each lane, and proof of what really ran.

The names are loaded when they are first used: `lossbisect.train.inside` is imported in the trainer's process, which
    must not
pay for, or depend on, the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lossbisect.train.curves import read_run
    from lossbisect.train.run import cache_directory, run_recipe
    from lossbisect.train.types import Lane, Outcome, Provenance, RunRecord, RunSpec, Sources, TrainerName

__all__ = [
    "Lane",
    "Outcome",
    "Provenance",
    "RunRecord",
    "RunSpec",
    "Sources",
    "TrainerName",
    "cache_directory",
    "read_run",
    "run_recipe",
]

_HOME = {"read_run": "curves", "cache_directory": "run", "run_recipe": "run"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'lossbisect.train' has no attribute {name!r}")
    return getattr(import_module(f"lossbisect.train.{_HOME.get(name, 'types')}"), name)
