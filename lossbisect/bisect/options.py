"""What a bisection looks for, and how sure it has to be."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from lossbisect.plain_values import mapping_of, sequence_of, string_or_none

__all__ = ["Fixup", "Regress", "SearchOptions"]

DEFAULT_CONFIDENCE = 0.95


class Regress(StrEnum):
    """What counts as bad."""

    LOSS = "loss"
    """Another curve of the metric."""
    GRAD_NORM = "grad-norm"
    """Another curve of the gradient norm."""
    NAN = "nan"
    """The metric is NaN or infinite somewhere; any finite curve is good."""
    CRASH = "crash"
    """The run fails as the bad end's does; one that finishes is good."""
    REPEATABILITY = "repeatability"
    """Two runs of the commit differ."""
    THROUGHPUT = "throughput"
    """An iteration takes longer."""
    MEMORY = "memory"
    """The peak of the memory is higher."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fixup:
    """A change that commits are run with, so that they can be tested.

    Attributes:
        name: A patch file's path, or a commit's name: what it changed against its first parent is the change.
        when: ``A..B`` or one commit: which commits get it; None: all, but those that stand on that commit.
        patch: What the file says, once it was read.
        change: Full SHAs of the commit's first parent and of the commit, once it was looked up.
    """

    name: str
    when: str | None = None
    patch: str | None = None
    change: tuple[str, str] | None = None

    @classmethod
    def parse(cls, text: str) -> "Fixup":
        """``NAME`` or ``NAME@A..B``."""
        name, at, when = text.rpartition("@")
        return cls(name=name, when=when) if at and name and ".." in when else cls(name=text)

    @classmethod
    def from_json(cls, row: Mapping[str, object]) -> "Fixup":
        """What ``asdict`` made, after it was JSON.

        Raises:
            TypeError, ValueError: The row isn't one.
        """
        change = None
        if (given := row.get("change")) is not None:
            before, after = sequence_of(given)
            change = str(before), str(after)
        when, patch = string_or_none(row.get("when")), string_or_none(row.get("patch"))
        return cls(name=str(row["name"]), when=when, patch=patch, change=change)


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchOptions:
    """What is looked for.

    Attributes:
        regress: What counts as bad.
        confidence: Probability from which a commit is named if runs are noisy, between 0.5 and 1.
        min_effect: Relative difference below which two curves or figures count as the same; None: no floor.
        probe: How many inner commits are run before it is said that nothing changed between equal ends.
        fold: A commit that changes nothing that a neighbour's run read isn't run: it gives the same run.
        find_all: Find every change of the range, not only the one that leads to the bad end.
        skip: Commits that are never run: ``A..B``, or one commit each.
        fixups: Changes that commits are run with.
        revert: The bad end is run with the culprit taken back, once a culprit was found.
        find_fix: The older end is the broken one: look for the commit that mended it.
        bridge_follows: Where the frozen Bridge can't load a commit, it runs with the Bridge of its day.
        advance: The older end is what is in use: look for the newest commit that still gives the same.
    """

    regress: Regress = Regress.LOSS
    confidence: float = DEFAULT_CONFIDENCE
    min_effect: float | None = None
    probe: int = 0
    fold: bool = True
    find_all: bool = False
    skip: tuple[str, ...] = ()
    fixups: tuple[Fixup, ...] = ()
    revert: bool = True
    find_fix: bool = False
    bridge_follows: bool = False
    advance: bool = False

    def to_json(self) -> dict[str, object]:
        """The options as plain values."""
        fixups = [asdict(fixup) for fixup in self.fixups]
        return {**asdict(self), "regress": self.regress.value, "skip": list(self.skip), "fixups": fixups}

    @classmethod
    def from_json(cls, row: Mapping[str, object]) -> "SearchOptions":
        """What `to_json` wrote.

        Raises:
            TypeError, ValueError: The row isn't one.
        """
        values: dict[str, object] = {**row, "skip": tuple(map(str, sequence_of(row.get("skip", []))))}
        values["fixups"] = tuple(Fixup.from_json(mapping_of(each)) for each in sequence_of(row.get("fixups", [])))
        if "regress" in row:
            values["regress"] = Regress(str(row["regress"]))
        return cls(**values)  # type: ignore[arg-type]
