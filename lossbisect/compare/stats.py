"""How two aligned curves differ.

Every row has a state on each side (missing, NaN, infinite, finite). Two finite values are compared by their relative
difference, less what the printed digits alone explain; two other states only by being equal. So a NaN never passes as a
small difference, and no row is left out in silence.
"""

from typing import TYPE_CHECKING

from lossbisect.compare.types import AlignedCurves, Difference, NoiseFloor

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ROWS_FOR_SHIFT", "classify", "difference"]

ROWS_FOR_SHIFT = 8
"""Compared rows from which a median of differences says anything."""
_LOOKAHEAD = 5
"""Rows, the first one included, of which most must be beyond the noise for a divergence to begin: no lone spike."""


def classify(curves: AlignedCurves, noise: NoiseFloor) -> "pl.DataFrame":
    """The aligned rows with what each one says.

    Adds ``baseline_state`` and ``candidate_state`` (finite, NaN, inf, -inf, missing), ``relative`` ((candidate -
    baseline) / |baseline|; null where a side isn't finite), ``noise_rel`` and ``real_rel`` (the noise floor at that
    row), ``is_compared`` (both finite), ``is_break`` (the states differ), ``is_different`` (beyond the printed digits),
    ``is_doubtful`` (not surely noise) and ``is_real`` (surely no noise). A break is doubtful; it is real unless the
    value is just missing on one side.
    """
    import polars as pl

    baseline, candidate = pl.col("baseline"), pl.col("candidate")
    both_finite = pl.col("baseline_state").eq("finite") & pl.col("candidate_state").eq("finite")
    scale = pl.max_horizontal(baseline.abs(), candidate.abs())
    per_baseline = pl.col("delta") / pl.when(baseline == 0).then(scale).otherwise(baseline.abs())
    is_exact = noise.surely_real_rel == 0  # then a last digit counts, unless it was worked out from two rounded ones
    explained = pl.when(pl.col("is_repaired") | (not is_exact)).then(pl.col("quantum")).otherwise(0.0)
    excess = pl.col("delta").abs() - explained
    compared, broken = pl.col("is_compared"), pl.col("is_break")
    return (
        curves.frame.with_columns(
            _state(baseline).alias("baseline_state"),
            _state(candidate).alias("candidate_state"),
            (_growth(noise) * noise.surely_noise_rel).alias("noise_rel"),
            (_growth(noise) * noise.surely_real_rel).alias("real_rel"),
        )
        .with_columns(
            both_finite.alias("is_compared"),
            pl.col("baseline_state").ne(pl.col("candidate_state")).alias("is_break"),
            pl.any_horizontal(pl.col("baseline_state", "candidate_state").eq("missing")).alias("is_missing"),
        )
        .with_columns(
            pl.when(compared).then(pl.when(pl.col("delta") == 0).then(0.0).otherwise(per_baseline)).alias("relative"),
            (broken | (compared & (excess > 0))).alias("is_different"),
            (broken | (compared & (excess > pl.col("noise_rel") * scale))).alias("is_doubtful"),
            (broken & ~pl.col("is_missing") | (compared & (excess > pl.col("real_rel") * scale))).alias("is_real"),
        )
    )


def difference(curves: AlignedCurves, noise: NoiseFloor) -> Difference:
    """How two aligned curves differ, given how far equal runs may lie apart.

    A divergence begins at the first row that is surely beyond the noise and of which, with the four rows after it, most
    are so too. Rows beyond the noise that don't last are ``spikes``. Nothing is assumed about the noise's distribution;
    the noise floor is taken as it is.
    """
    import polars as pl

    if _is_equal_throughout(curves.frame["delta"]):
        return _no_difference(curves)
    rows = classify(curves, noise)
    compared = rows.filter("is_compared")
    onset = _onset(rows)
    before = rows if onset is None else rows.filter(pl.col("iteration") < onset)
    largest = compared.filter(pl.col("relative").abs() == pl.col("relative").abs().max()).head(1)
    is_finite = {side: pl.col(f"{side}_state").eq("finite") for side in ("baseline", "candidate")}
    return Difference(
        metric=curves.metric,
        iterations=compared.height,
        is_identical=compared.height > 0 and not (rows["is_break"].any() or (compared["delta"] != 0).any()),
        first_difference=_first(rows, "is_different"),
        first_divergent=onset,
        largest_rel=abs(largest["relative"].item()) if largest.height else None,
        largest_at=largest["iteration"].item() if largest.height else None,
        typical_rel=_median(compared["relative"].abs()),
        only_baseline_missing=_iterations(rows.filter(~is_finite["baseline"] & is_finite["candidate"])),
        only_candidate_missing=_iterations(rows.filter(is_finite["baseline"] & ~is_finite["candidate"])),
        first_doubtful=_first(rows, "is_doubtful"),
        shift_rel=_median(compared["relative"]),
        spikes=_iterations(before.filter("is_real")),
        doubtful_rows=rows.filter("is_doubtful").height,
    )


def _is_equal_throughout(delta: "pl.Series") -> bool:
    """Whether all rows have finite, equal values; the usual case for a schedule, so worth a short cut."""
    return delta.len() > 0 and delta.null_count() == 0 and bool((delta == 0).all())


def _no_difference(curves: AlignedCurves) -> Difference:
    return Difference(
        metric=curves.metric,
        iterations=curves.frame.height,
        is_identical=True,
        first_difference=None,
        first_divergent=None,
        largest_rel=0.0,
        largest_at=int(curves.frame["iteration"][0]),
        typical_rel=0.0,
        only_baseline_missing=(),
        only_candidate_missing=(),
        shift_rel=0.0,
    )


def _growth(noise: NoiseFloor) -> "pl.Expr":
    """Factor on the noise floor by row: 1 at first, then in proportion to the iterations since the first row."""
    import polars as pl

    if noise.grows_after is None:
        return pl.lit(1.0)
    since = pl.col("iteration") - pl.col("iteration").min() + 1
    return pl.max_horizontal(pl.lit(1.0), since / noise.grows_after)


def _state(value: "pl.Expr") -> "pl.Expr":
    import polars as pl

    return (
        pl.when(value.is_null())
        .then(pl.lit("missing"))
        .when(value.is_nan())
        .then(pl.lit("NaN"))
        .when(value.is_infinite())
        .then(pl.when(value > 0).then(pl.lit("inf")).otherwise(pl.lit("-inf")))
        .otherwise(pl.lit("finite"))
    )


def _onset(rows: "pl.DataFrame") -> int | None:
    """First iteration that is surely beyond the noise and doesn't return to it at once."""
    import polars as pl

    real = pl.col("is_real").cast(pl.Int64)
    ahead = real.reverse().rolling_sum(_LOOKAHEAD, min_samples=1).reverse()
    length = pl.min_horizontal(pl.int_range(pl.len()).reverse() + 1, _LOOKAHEAD)
    return _first(rows.with_columns((pl.col("is_real") & (2 * ahead > length)).alias("is_onset")), "is_onset")


def _first(rows: "pl.DataFrame", flag: str) -> int | None:
    iterations = rows.filter(flag)["iteration"]
    return iterations.item(0) if iterations.len() else None


def _iterations(rows: "pl.DataFrame") -> tuple[int, ...]:
    return tuple(rows["iteration"].to_list())


def _median(values: "pl.Series") -> float | None:
    median = values.median()
    return float(median) if isinstance(median, int | float) else None
