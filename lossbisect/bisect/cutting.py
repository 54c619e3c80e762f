"""Ending a run as soon as its verdict is sure.

Only where runs repeat bit for bit: then one iteration that equals the bad end's and not the good end's is the bad end's
curve, and equality with the good end's some iterations past the bad end's first difference is the good end's. A run
that is neither goes on to its end: only the whole curve tells what it is.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

from lossbisect.bisect.options import Regress
from lossbisect.bisect.types import BisectPlan

__all__ = ["Cutter", "first_difference", "may_cut"]

type EndValues = tuple[Mapping[int, float], Mapping[int, float]]
"""What is judged of the good and the bad end, by iteration."""

_METRICS = {"lm_loss": "lm loss", "grad_norm": "grad-norm"}
"""What a run's recorded values are called, for the metrics on which a run may be cut."""

_MARGIN = 2
"""Iterations past the bad end's first difference that have to be equal to the good end's too."""


def may_cut(plan: BisectPlan) -> bool:
    """Whether the first difference between the ends tells every run's side.

    Where a NaN is hunted, or a difference of some size, only the whole curve does.
    """
    search = plan.search
    is_by_first = search.regress is not Regress.NAN and not search.find_all and not search.min_effect
    return is_by_first and not plan.tolerance and plan.metric in _METRICS


class Cutter:
    """Watches the values that a run records, full precision.

    Attributes:
        reason: Why the run could be ended; None as long as it can't.
    """

    reason: str | None

    def __init__(self, scalars: Path, metric: str, ends: Callable[[], EndValues | None]) -> None:
        """Watch a run.

        Args:
            scalars: File that the run appends its values to; need not be there yet.
            metric: What is judged, of a plan that `may_cut`.
            ends: Gives the ends' values; None as long as they aren't known.
        """
        self.reason = None
        self._scalars = scalars
        self._tag = _METRICS[metric]
        self._ask_for_ends = ends
        self._ends: EndValues | None = None
        self._first: int | None = None
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        self._is_good = True
        self._is_bad = True

    def is_sure(self) -> bool:
        """Read what has come since the last time, and say whether the run can be ended."""
        if self._ends is None and (ends := self._ask_for_ends()) is not None:
            self._ends, self._first = ends, first_difference(*ends)
        if self.reason is None and self._first is not None:
            for iteration, value in self._new_values():
                self._take(iteration, value)
        return self.reason is not None

    def _take(self, iteration: int, value: float) -> None:
        assert self._ends is not None
        assert self._first is not None
        good, bad = self._ends
        if iteration not in good or iteration not in bad or self.reason is not None:
            return
        self._is_good &= _equal(value, good[iteration])
        self._is_bad &= _equal(value, bad[iteration])
        if iteration == self._first and self._is_bad:
            self.reason = f"stopped: verdict sure at iteration {iteration}"
        if iteration == self._first + _MARGIN and self._is_good:
            self.reason = f"stopped: verdict sure at iteration {iteration}"

    def _new_values(self) -> list[tuple[int, float]]:
        try:
            with self._scalars.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        except OSError:
            self._offset = 0  # a file that went is written anew from its start
            return []
        whole = content[: content.rfind(b"\n") + 1]
        self._offset += len(whole)
        values = []
        for line in whole.splitlines():
            row = json.loads(line)
            if row.get("tag") == self._tag:
                value = row["value"]
                values.append((int(row["iteration"]), float(row["nonfinite"] if value is None else value)))
        return values


def first_difference(good: Mapping[int, float], bad: Mapping[int, float]) -> int | None:
    """The first iteration at which both have a value, and not the same; None if there is none."""
    return next((i for i in sorted(good) if i in bad and not _equal(good[i], bad[i])), None)


def _equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
