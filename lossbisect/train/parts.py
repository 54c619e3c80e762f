"""The parts of a run: one, or two processes with a checkpoint between them. Pure."""

from enum import StrEnum
from pathlib import Path

from lossbisect.train.recipes import Recipe

__all__ = ["Part", "checkpoints", "parts_of"]


class Part(StrEnum):
    """Which part of a run a process trains."""

    WHOLE = "whole"
    FIRST = "first"
    """Up to the recipe's ``restart_at``; ends with a checkpoint."""
    SECOND = "second"
    """From that checkpoint on."""


def parts_of(recipe: Recipe) -> tuple[Part, ...]:
    """The parts that a run of the recipe has, in their order."""
    return (Part.FIRST, Part.SECOND) if recipe.restart_at else (Part.WHOLE,)


def checkpoints(out: Path) -> Path:
    """Where the first part saves, in the run's own directory."""
    return out / "checkpoints"
