"""Which commits are candidates, and what one stage of a bisection looks at."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Scope", "Searched", "Stage", "StageKind"]


class Searched(StrEnum):
    """Whose commits are searched."""

    MCORE = "mcore"
    """Megatron-LM's; in a Bridge checkout Bridge stays where it is."""
    BRIDGE = "bridge"
    """Bridge's, each with the Megatron-LM that it pins."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Which commits are candidates.

    Attributes:
        searched: Whose commits.
        paths: Only commits that touch these paths of the searched repository; empty: all.
        all_parents: A merge isn't the last word: the commits that it brought in are searched too.
        oldest: Name of the commit at which looking for a good end stops; None: the first commit of the history.
    """

    searched: Searched = Searched.MCORE
    paths: tuple[str, ...] = ()
    all_parents: bool = False
    oldest: str | None = None

    def to_json(self) -> dict[str, object]:
        """The scope as plain values."""
        return {
            "searched": self.searched.value,
            "paths": list(self.paths),
            "all_parents": self.all_parents,
            "oldest": self.oldest,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, object]) -> "Scope":
        """What `to_json` wrote.

        Raises:
            TypeError, ValueError: The row isn't one.
        """
        paths = row.get("paths", ())
        if not isinstance(paths, list | tuple):
            raise TypeError(f"paths are no list: {paths!r}")
        oldest = row.get("oldest")
        return cls(
            searched=Searched(str(row.get("searched", Searched.MCORE.value))),
            paths=tuple(map(str, paths)),
            all_parents=bool(row.get("all_parents", False)),
            oldest=None if oldest is None else str(oldest),
        )


class StageKind(StrEnum):
    """What a stage looks for."""

    RANGE = "range"
    """The change between two ends."""
    WALK = "walk back"
    """A good end before the bad one; the plan's good end is how far it may go."""
    SIDES = "merge base"
    """Which side of their merge base two unrelated ends differ by."""
    MERGED = "inside a merge"
    """The change among the commits that a merge brought in."""
    GAP = "left out"
    """Whether the commits that were left out before the culprit hold the change."""
    PAIR = "pair"
    """Whether a commit of Bridge without the pin that it moves, or that pin without it, makes the change."""
    PINNED = "inside the pin"
    """The change between two pins of Megatron-LM, with Bridge held at one commit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One stage of a bisection: it has a journal, two ends and the commits in between.

    Attributes:
        kind: What it looks for.
        points: The only commits in between, oldest first, where that isn't the whole line.
    """

    kind: StageKind = StageKind.RANGE
    points: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The stage as plain values."""
        return {"kind": self.kind.value, "points": list(self.points)}

    @classmethod
    def from_json(cls, row: Mapping[str, object]) -> "Stage":
        """What `to_json` wrote.

        Raises:
            TypeError, ValueError: The row isn't one.
        """
        points = row.get("points", ())
        if not isinstance(points, list | tuple):
            raise TypeError(f"points are no list: {points!r}")
        return cls(kind=StageKind(str(row["kind"])), points=tuple(map(str, points)))
