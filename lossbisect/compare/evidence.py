"""The figures that a diagnosis reads: aligned values, how they differ, and what both logs say of themselves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from lossbisect.compare.middle import median
from lossbisect.compare.types import AlignedCurves, ConfigDifference, Difference, Ends, NoiseFloor
from lossbisect.parsers.runlog import ConfigValue

__all__ = ["ROWS_OF_A_LEVEL", "Evidence", "Pair", "constant_ratio", "pairs_of", "signed"]

ROWS_OF_A_LEVEL = 8
"""Rows whose median says how far off a curve lies."""


class Pair(NamedTuple):
    """Both sides' values at one iteration; None where a side logged none."""

    iteration: int
    baseline: float | None
    candidate: float | None
    quantum: float = 0.0

    @property
    def is_finite(self) -> bool:
        """Whether the two can be compared."""
        ours, theirs = self.baseline, self.candidate
        return ours is not None and theirs is not None and math.isfinite(ours) and math.isfinite(theirs)


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """All that a diagnosis looks at.

    Attributes:
        metric: The judged metric.
        noise: Its noise floor.
        pairs: Aligned values by metric, ascending.
        differences: How each metric differs; the judged one and the witnesses.
        config: Settings that differ, most telling first.
        settings: What the baseline trains with, by neutral name.
        resumes: Iterations that either side prints first after a restart.
        are_medians: The curves are medians of groups, whose runs aren't meant to be equal.
        ends: Where the two runs end, and whether one was cut.
        repaired: Iterations whose value was worked out from two printed ones.
        columns: Pairs of columns that training follows: ``learning_rate``, ``consumed_samples``,
            ``number_of_skipped_iterations``.
    """

    metric: str
    noise: NoiseFloor
    pairs: Mapping[str, Sequence[Pair]]
    differences: Mapping[str, Difference]
    config: tuple[ConfigDifference, ...] = ()
    settings: Mapping[str, ConfigValue] = field(default_factory=dict)
    resumes: tuple[int, ...] = ()
    are_medians: bool = False
    ends: Ends | None = None
    repaired: frozenset[int] = frozenset()
    columns: Mapping[str, Sequence[Pair]] = field(default_factory=dict)

    @property
    def loss(self) -> Difference:
        """How the judged metric differs."""
        return self.differences[self.metric]

    @property
    def onset(self) -> int | None:
        """First divergent iteration of the judged metric."""
        return self.loss.first_divergent

    @cached_property
    def began(self) -> int | None:
        """Iteration from which on the judged metric lies off, or None; noise may have hidden its first rows.

        That is the onset, moved back over the rows that already lie off by half as much as those after it; one row
        that noise throws back between such rows doesn't end the walk. Where no single row is sure, the rows at the end
        say by how much.
        """
        pairs = self.finite
        onset = self.onset
        if not pairs or (onset is None and not self.is_off):
            return None
        rows = [row for row, pair in enumerate(pairs) if onset is not None and pair.iteration >= onset]
        if onset is not None and not rows:
            return onset
        start = rows[0] if rows else len(pairs) - ROWS_OF_A_LEVEL
        after = pairs[max(0, start) :][:ROWS_OF_A_LEVEL]
        level = median(signed(pair) for pair in after)
        off = [signed(pair) * level >= level * level / 2 for pair in pairs]
        row = max(0, start)
        while row and (off[row - 1] or (row >= 3 and off[row - 2] and off[row - 3])):
            row -= 1
        return pairs[row].iteration

    @property
    def is_off(self) -> bool:
        """Whether the judged metric is surely off, though perhaps in no single row."""
        limit, shift, effect = self.noise.surely_shift_rel, self.loss.shift_rel, self.loss.effect
        is_shifted = limit is not None and shift is not None and abs(shift) > limit
        return self.onset is not None or is_shifted or (effect is not None and effect.is_alarm)

    @cached_property
    def finite(self) -> list[Pair]:
        """The judged metric's pairs that can be compared."""
        return [pair for pair in self.pairs[self.metric] if pair.is_finite]

    def fields(self, *names: str) -> list[ConfigDifference]:
        """The settings of these names that differ."""
        return [item for item in self.config if item.field in names]


def signed(pair: Pair) -> float:
    """Relative difference of two finite values, above 0 where the candidate is the larger one."""
    ours, theirs = pair.baseline or 0.0, pair.candidate or 0.0
    return (theirs - ours) / max(abs(ours), abs(theirs), 1e-30)


def pairs_of(curves: AlignedCurves) -> list[Pair]:
    """The rows of an alignment."""
    return [Pair(*row) for row in curves.frame.select("iteration", "baseline", "candidate", "quantum").iter_rows()]


def constant_ratio(pairs: Sequence[Pair], tolerance: float) -> float | None:
    """The candidate's values as a constant times the baseline's; None if they aren't, within that relative tolerance.

    What the printed digits leave open is allowed for.
    """
    kept = [pair for pair in pairs if pair.is_finite and pair.baseline and pair.candidate]
    if len(kept) < 3:
        return None
    ratio = median(pair.candidate / pair.baseline for pair in kept if pair.candidate and pair.baseline)
    off = sum(
        abs((pair.candidate or 0) - ratio * (pair.baseline or 0))
        > tolerance * abs(ratio * (pair.baseline or 0)) + (1 + abs(ratio)) * pair.quantum
        for pair in kept
    )
    return ratio if off <= len(kept) // 10 else None
