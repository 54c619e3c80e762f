"""Noise measured on repeats: further runs of the same set-up, as many as there are, of either side."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lossbisect.compare.align import ITERATION, align
from lossbisect.compare.types import AlignedCurves, Difference, Effect, NoiseFloor, Repeats
from lossbisect.compare.wording import counted
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import LossKind, RunLog

if TYPE_CHECKING:
    import polars as pl

    from lossbisect.compare.effect import FloatArray

__all__ = ["MeasuredNoise", "corrected", "dated", "measure", "medians", "standardised", "tested"]

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
        all_rows: The same runs at all iterations that all have, finite or not.
    """

    floor: NoiseFloor
    repeats: int
    rows: "pl.DataFrame"
    all_rows: "pl.DataFrame"


def measure(
    curves: AlignedCurves, baseline: RunLog, candidate: RunLog | None, repeats: Repeats
) -> MeasuredNoise | None:
    """The noise of the curves' metric; None where no repeat has it. The candidate isn't needed without its repeats."""
    import polars as pl

    on = curves.on
    joined = curves.frame.select(
        *dict.fromkeys(("iteration", on)), "quantum", baseline_0="baseline", candidate_0="candidate"
    )
    reference = baseline if candidate is None else max(baseline, candidate, key=lambda log: _window(log, on))
    used = 0
    for side, runs in (("baseline", repeats.baseline), ("candidate", repeats.candidate)):
        for number, run in enumerate(runs, start=1):
            try:
                frame = align(reference, run, curves.metric, on=on).frame
            except AlignmentError:
                continue
            joined = joined.join(frame.select(on, pl.col("candidate").alias(f"{side}_{number}")), on=on)
            used += 1
    values = [name for name in joined.columns if name[-1].isdigit()]
    rows = joined.filter(pl.all_horizontal(pl.col(values).is_finite())).sort("iteration")
    if not used or rows.is_empty():
        return None
    scale = pl.max_horizontal(pl.col(values).abs())
    rows = rows.with_columns(quantum_rel=pl.when(scale > 0).then(pl.col("quantum") / scale).otherwise(0.0))
    floor = _floor(rows, scale, counted(used, repeats.noun))
    return MeasuredNoise(floor=floor, repeats=used, rows=rows.drop("quantum"), all_rows=joined.sort("iteration"))


def _window(log: RunLog, on: str) -> int:
    """Longest stretch that a row of a log stands for: the finer side is averaged over the coarser one's rows."""
    if log.loss_kind is LossKind.PER_ITERATION:
        windows = log.iterations["global_batch_size"] if on != ITERATION else None
    else:
        windows = log.iterations["window"] * (log.iterations["global_batch_size"] if on != ITERATION else 1)
    longest = 1 if windows is None else windows.max()
    return longest if isinstance(longest, int) else 0


def _floor(rows: "pl.DataFrame", scale: "pl.Expr", name: str) -> NoiseFloor:
    import polars as pl

    spreads = []
    for side in ("baseline", "candidate"):
        runs = [column for column in rows.columns if column.startswith(f"{side}_")]
        spreads.append(pl.max_horizontal(runs) - pl.min_horizontal(runs))
    largest = rows.select((pl.max_horizontal(spreads) / scale).fill_nan(0.0).max()).item()
    if largest == 0:
        return NoiseFloor(
            source=f"{name} equal in every digit", surely_noise_rel=0.0, surely_real_rel=0.0, is_measured=True
        )
    return NoiseFloor(source=name, surely_noise_rel=largest, surely_real_rel=_REAL_FACTOR * largest, is_measured=True)


def medians(curves: AlignedCurves, noise: MeasuredNoise) -> AlignedCurves:
    """The curves with each side's median over its runs; NaN or missing where any of them is."""
    import polars as pl

    def middle(side: str) -> pl.Expr:
        runs = [pl.col(name) for name in noise.all_rows.columns if name.startswith(f"{side}_")]
        is_missing, is_nan = (
            pl.any_horizontal(test(run) for run in runs) for test in (pl.Expr.is_null, pl.Expr.is_nan)
        )
        whole = pl.concat_list(runs).list.median()
        return pl.when(is_missing).then(None).when(is_nan).then(math.nan).otherwise(whole)

    rows = noise.all_rows.select(curves.on, *(middle(side).alias(side) for side in ("baseline", "candidate")))
    frame = curves.frame.drop("baseline", "candidate").join(rows, on=curves.on).sort("iteration")
    frame = frame.with_columns(delta=pl.col("candidate") - pl.col("baseline")).select(curves.frame.columns)
    return replace(curves, frame=frame)


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
    import numpy as np

    from lossbisect.compare.effect import row_widths
    from lossbisect.compare.onset import onset_rows

    effect = difference.effect
    if effect is None or not effect.is_alarm:
        return difference
    delta, nulls, quantum = _arrays(noise)
    widths = row_widths(nulls, quantum)
    iterations = noise.rows["iteration"]
    low, onset, high = (int(iterations[row]) for row in onset_rows(delta / widths, nulls / widths, noise.repeats))
    if difference.first_divergent is not None and difference.first_divergent < onset:
        onset = difference.first_divergent
        low, high = min(low, onset), max(high, onset)
    since = float(np.median(delta[(iterations >= onset).to_numpy()]))
    found: Effect = replace(effect, onset_low=low, onset=onset, onset_high=high, since_rel=since)
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
