"""What a bisection looks for, and how sure it has to be."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

__all__ = ["Regress", "SearchOptions"]

DEFAULT_CONFIDENCE = 0.95


class Regress(StrEnum):
    """What counts as bad."""

    LOSS = "loss"
    """Another curve of the metric."""
    GRAD_NORM = "grad-norm"
    """Another curve of the gradient norm."""
    NAN = "nan"
    """The metric is NaN or infinite somewhere; any finite curve is good."""


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
    """

    regress: Regress = Regress.LOSS
    confidence: float = DEFAULT_CONFIDENCE
    min_effect: float | None = None
    probe: int = 0
    fold: bool = True
    find_all: bool = False

    def to_json(self) -> dict[str, object]:
        """The options as plain values."""
        return {**asdict(self), "regress": self.regress.value}

    @classmethod
    def from_json(cls, row: Mapping[str, object]) -> "SearchOptions":
        """What `to_json` wrote.

        Raises:
            TypeError, ValueError: The row isn't one.
        """
        values = {**row, "regress": Regress(str(row["regress"]))} if "regress" in row else dict(row)
        return cls(**values)  # type: ignore[arg-type]
