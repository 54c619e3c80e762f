"""A run compared with its baseline while it goes on: logs in, new rows and an alarm out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lossbisect.compare.align import align
from lossbisect.compare.noise import default_noise, tolerance_noise
from lossbisect.compare.repeats import MeasuredNoise, measure, standardised
from lossbisect.compare.stats import classify, difference
from lossbisect.compare.types import AlignedCurves, NoiseFloor, Repeats
from lossbisect.compare.wording import metric_name, relative_text, value_text
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import RunLog

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Seen", "Watch"]

_ROWS_FOR_SURE = 3
"""Rows beyond the noise, of five, before a single one may count as a divergence rather than a spike."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What is new since the last look.

    Attributes:
        lines: One line for each new row.
        last: The last iteration that both sides have, or 0.
        alarm: Why the run is surely different, or None.
    """

    lines: tuple[str, ...]
    last: int
    alarm: str | None


class Watch:
    """Remembers the rows that were seen, so that a log that is rotated or truncated loses none.

    Where a restarted run prints an iteration again, the new row counts.
    """

    def __init__(
        self,
        baseline: RunLog,
        *,
        metric: str = "lm_loss",
        tolerance: float | NoiseFloor | None = None,
        repeats: tuple[RunLog, ...] = (),
    ) -> None:
        self._baseline = baseline
        self._metric = metric
        self._tolerance = tolerance
        self._repeats = Repeats(baseline=repeats)
        self._noise = self._measured() if tolerance is None else None
        self._frame: pl.DataFrame | None = None

    def update(self, candidate: RunLog) -> Seen:
        """What the run's log, read again, says that is new."""
        try:
            curves = align(self._baseline, candidate, self._metric)
        except AlignmentError:
            return Seen(lines=(), last=self._last(), alarm=None)
        old, frame = self._frame, curves.frame
        if old is not None:
            frame = old.join(frame.select("iteration"), on="iteration", how="anti").vstack(frame).sort("iteration")
        known = set() if old is None else set(old.select("iteration", "candidate").iter_rows())
        self._frame = frame
        floor = self._floor(candidate)
        merged = AlignedCurves(metric=self._metric, on="iteration", frame=frame, dropped=())
        rows = classify(merged, floor).select("iteration", "baseline", "candidate", "relative").iter_rows()
        lines = tuple(_line(*row) for row in rows if (row[0], row[2]) not in known)
        return Seen(lines=lines, last=self._last(), alarm=self._alarm(merged, floor))

    def _measured(self) -> MeasuredNoise | None:
        """The noise of the baseline's repeats."""
        if not self._repeats.count:
            return None
        return measure(align(self._baseline, self._baseline, self._metric), self._baseline, None, self._repeats)

    @property
    def floor(self) -> NoiseFloor | None:
        """The floor that the repeats show; None without any."""
        return None if self._noise is None else self._noise.floor

    def _floor(self, candidate: RunLog) -> NoiseFloor:
        if self._noise is not None:
            return self._noise.floor
        if isinstance(self._tolerance, NoiseFloor):
            return self._tolerance
        if self._tolerance is not None:
            return tolerance_noise(self._tolerance)
        return default_noise(self._baseline, candidate)

    def _alarm(self, curves: AlignedCurves, floor: NoiseFloor) -> str | None:
        found = difference(curves, floor)
        onset = found.first_divergent
        if onset is not None:
            row = curves.frame.filter(iteration=onset).row(0, named=True)
            is_broken = onset in (*found.only_baseline_missing, *found.only_candidate_missing)
            since = curves.frame.filter(curves.frame["iteration"] >= onset).height
            if is_broken or floor.surely_real_rel == 0 or since >= _ROWS_FOR_SURE:
                values = f"{value_text(row['baseline'])} vs {value_text(row['candidate'])}"
                name = metric_name(self._metric)
                return f"{name} diverges from iteration {onset} on ({values}), beyond {floor.source}"
        return self._shifted(curves)

    def _shifted(self, curves: AlignedCurves) -> str | None:
        if self._noise is None or self._noise.floor.surely_real_rel == 0:
            return None
        from lossbisect.compare.effect import ALPHA
        from lossbisect.compare.sequential import first_alarm

        found = standardised(curves, self._noise)
        if found is None:
            return None
        standard, nulls = found
        rows = first_alarm(standard, nulls, self._noise.repeats)
        if rows is None:
            return None
        return (
            f"{metric_name(self._metric)} is shifted beyond {self._noise.floor.source} by iteration "
            f"{curves.frame['iteration'][rows - 1]} (false alarms over the whole run: {ALPHA:.0%} at most)"
        )

    def _last(self) -> int:
        return 0 if self._frame is None or self._frame.is_empty() else int(self._frame["iteration"][-1])


def _line(iteration: int, baseline: float | None, candidate: float | None, relative: float | None) -> str:
    apart = "" if relative is None else f"  {relative_text(relative, is_signed=True)}"
    return f"iteration {iteration}: {value_text(baseline)} vs {value_text(candidate)}{apart}"
