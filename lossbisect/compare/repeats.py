"""Noise measured on repeats: further runs of the same set-up, as many as there are, of either side."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lossbisect.compare.align import align
from lossbisect.compare.types import AlignedCurves, Difference, Effect, NoiseFloor, Repeats
from lossbisect.compare.wording import counted
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import RunLog

if TYPE_CHECKING:
    import polars as pl

    from lossbisect.compare.effect import FloatArray

__all__ = ["MeasuredNoise", "corrected", "dated", "measure", "standardised", "tested"]

_REAL_FACTOR = 5.0
"""Rows beyond five times the largest difference of any repeat are no repeat's; heavy tails reach twice as far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredNoise:
    """The noise of one metric as its repeats show it.

    Attributes:
        floor: For single rows: up to the largest difference of any two repeats, noise; above five times that, not.
        repeats: Number of further runs.
        rows: Columns ``iteration``, ``quantum_rel`` (smallest visible relative difference), ``baseline_0`` and so on,
            ``candidate_0`` and so on: iterations that every run has a finite value for.
    """

    floor: NoiseFloor
    repeats: int
    rows: "pl.DataFrame"


def measure(
    curves: AlignedCurves, baseline: RunLog, candidate: RunLog | None, repeats: Repeats
) -> MeasuredNoise | None:
    """The noise of the curves' metric; None where no repeat has it. The candidate isn't needed without its repeats."""
    import polars as pl

    joined = curves.frame.select("iteration", "quantum", baseline_0="baseline", candidate_0="candidate")
    used = 0
    for side, log, runs in (("baseline", baseline, repeats.baseline), ("candidate", candidate, repeats.candidate)):
        for number, run in enumerate(runs, start=1):
            assert log is not None
            try:
                frame = align(log, run, curves.metric).frame
            except AlignmentError:
                continue
            repeated = frame.select("iteration", pl.col("candidate").alias(f"{side}_{number}"))
            joined = joined.join(repeated, on="iteration")
            used += 1
    values = [name for name in joined.columns if name not in ("iteration", "quantum")]
    rows = joined.filter(pl.all_horizontal(pl.col(values).is_finite())).sort("iteration")
    if not used or rows.is_empty():
        return None
    scale = pl.max_horizontal(pl.col(values).abs())
    rows = rows.with_columns(quantum_rel=pl.when(scale > 0).then(pl.col("quantum") / scale).otherwise(0.0))
    return MeasuredNoise(floor=_floor(rows, scale, used), repeats=used, rows=rows.drop("quantum"))


def _floor(rows: "pl.DataFrame", scale: "pl.Expr", used: int) -> NoiseFloor:
    import polars as pl

    spreads = []
    for side in ("baseline", "candidate"):
        runs = [name for name in rows.columns if name.startswith(f"{side}_")]
        spreads.append(pl.max_horizontal(runs) - pl.min_horizontal(runs))
    largest = rows.select((pl.max_horizontal(spreads) / scale).fill_nan(0.0).max()).item()
    name = counted(used, "repeat")
    if largest == 0:
        return NoiseFloor(source=f"{name} equal in every digit", surely_noise_rel=0.0, surely_real_rel=0.0)
    return NoiseFloor(source=name, surely_noise_rel=largest, surely_real_rel=_REAL_FACTOR * largest)


def tested(difference: Difference, noise: MeasuredNoise) -> Difference:
    """The same difference with its shift tested against the repeats; unchanged where too few rows are there for it."""
    from lossbisect.compare.effect import MIN_ROWS, shift_effect

    if noise.floor.surely_real_rel == 0 or noise.rows.height < MIN_ROWS:
        return difference
    delta, nulls, quantum = _arrays(noise)
    return replace(difference, effect=shift_effect(delta, nulls, quantum, noise.repeats))


def corrected(effects: tuple[Effect, ...]) -> list[Effect]:
    """The effects of several metrics, their p values corrected for the number of metrics."""
    if not effects:
        return []
    from lossbisect.compare.effect import holm

    return holm(effects)


def dated(difference: Difference, noise: MeasuredNoise) -> Difference:
    """The same difference with the onset of a shift that is an alarm; a row surely beyond the noise dates it before."""
    from lossbisect.compare.effect import row_widths
    from lossbisect.compare.onset import onset_rows

    effect = difference.effect
    if effect is None or not effect.is_alarm:
        return difference
    delta, nulls, quantum = _arrays(noise)
    widths = row_widths(nulls, quantum)
    iterations = noise.rows["iteration"]
    low, onset, high = (int(iterations[row]) for row in onset_rows(delta / widths, nulls / widths))
    if difference.first_divergent is not None and difference.first_divergent < onset:
        onset = difference.first_divergent
        low, high = min(low, onset), max(high, onset)
    found: Effect = replace(effect, onset_low=low, onset=onset, onset_high=high)
    spikes = tuple(iteration for iteration in difference.spikes if iteration < onset)
    return replace(difference, effect=found, first_divergent=onset, spikes=spikes)


def standardised(curves: AlignedCurves, noise: MeasuredNoise) -> tuple["FloatArray", "FloatArray"] | None:
    """A run that goes on, in noise widths by row, and curves of pure noise; None where no row can be compared.

    Args:
        curves: The baseline and the run so far.
        noise: Of the baseline's repeats, measured on the baseline against itself.
    """
    from lossbisect.compare.effect import row_widths

    _, nulls, quantum = _arrays(noise)
    widths = row_widths(nulls, quantum)
    names = [name for name in noise.rows.columns if name.startswith("baseline_")]
    centre = noise.rows.select("iteration", centre=sum(noise.rows[name] for name in names) / len(names))
    rows = centre.with_row_index("row").join(
        curves.frame.filter(curves.frame["candidate"].is_finite()).select("iteration", "candidate"), on="iteration"
    )
    if rows.is_empty():
        return None
    rows = rows.sort("iteration")
    relative = (rows["candidate"] / rows["centre"] - 1).to_numpy()
    return relative / widths[rows["row"].to_numpy()], nulls / widths


def _arrays(noise: MeasuredNoise) -> tuple["FloatArray", "FloatArray", "FloatArray"]:
    """Relative difference of the sides' means, curves of pure noise, and the relative quantum."""
    import numpy as np

    from lossbisect.compare.effect import null_curves

    rows = noise.rows
    sides = []
    for side in ("baseline", "candidate"):
        names = [name for name in rows.columns if name.startswith(f"{side}_")]
        sides.append(np.stack([rows[name].cast(float).to_numpy() for name in names]))
    baseline, candidate = sides
    scale = np.abs(baseline.mean(axis=0))
    scale[scale == 0] = 1.0
    baseline, candidate = baseline / scale, candidate / scale
    delta = candidate.mean(axis=0) - baseline.mean(axis=0)
    return delta, null_curves(baseline, candidate), rows["quantum_rel"].to_numpy()
