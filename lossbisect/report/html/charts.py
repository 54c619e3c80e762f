"""The data of a page's charts: plain values, as ``assets/page.js`` reads them."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lossbisect.compare.types import Judgement
from lossbisect.compare.wording import metric_name
from lossbisect.report.panels import Panel, axis_label, panels_of
from lossbisect.schema import OWN_COLUMNS

if TYPE_CHECKING:
    import polars as pl

    from lossbisect.parsers.runlog import RunLog

__all__ = ["MOST_POINTS", "chart_data", "run_chart_data", "two_curves_data"]

MOST_POINTS = 20_000
"""Rows of one run that are drawn whole; of more rows each stretch keeps its lowest and its highest value."""


def chart_data(judgements: Sequence[Judgement], names: Sequence[str]) -> dict[str, object]:
    """Curves of one baseline and its candidates, one panel for each metric that has a value.

    Args:
        judgements: Against the same baseline.
        names: What the lines are called: the baseline, then each candidate.

    Returns:
        ``names`` and ``panels``. Of a panel: ``metric``, ``label``, ``on``, ``x`` (iterations, ascending), ``values``
        (one list for each name: numbers, or null), ``gone`` (one list for each name: iterations at which it has no
        finite value though another line has a row there), ``noise`` and ``real`` (the noise floor as corners of a line:
        pairs of x and height), ``source`` (where that floor comes from), ``onsets`` (first divergent iteration of each
        candidate, or null), ``is_different``. ``x`` is null where it is the first panel's. The relative difference is
        left to the page: it would double the data.
    """
    panels = [_panel(panel) for panel in panels_of(judgements) if _has_values(panel)]
    for later in panels[1:]:
        if later["x"] == panels[0]["x"]:
            later["x"] = None
    return {"names": list(names), "panels": panels}


def run_chart_data(log: "RunLog", name: str, *, most: int = MOST_POINTS) -> dict[str, object]:
    """Curves of one run alone, in the form of `chart_data`: one line, no noise, nothing that differs.

    Args:
        log: The run; an iteration that was run again shows its last attempt.
        name: What the line is called.
        most: Points of a column above which only the lowest and highest of each stretch are kept, both as they are.
    """
    import polars as pl

    rows = log.iterations.unique("iteration", keep="last", maintain_order=True).sort("iteration")
    panels: list[dict[str, object]] = []
    for column in rows.columns:
        if column in OWN_COLUMNS or not rows[column].dtype.is_numeric() or rows[column].is_null().all():
            continue
        values = rows.select("iteration", value=pl.col(column).cast(pl.Float64))
        shown = _thinned(values, most)
        gone = values.filter(pl.col("value").is_not_null() & ~pl.col("value").is_finite())["iteration"]
        panels.append(
            {
                "metric": metric_name(column),
                "label": axis_label(column),
                "on": "iteration",
                "x": shown["iteration"].to_list(),
                "values": [_finite(shown["value"])],
                "gone": [gone.to_list()[:most]],
                "noise": [],
                "real": [],
                "source": "",
                "onsets": [],
                "is_different": False,
            }
        )
    return {"names": [name], "panels": sorted(panels, key=lambda panel: panel["metric"] != "lm loss")}


def two_curves_data(
    reference: Mapping[int, float], other: Mapping[int, float], *, names: Sequence[str], metric: str, noise_rel: float,
    real_rel: float, onset: int | None,
) -> dict[str, object]:  # fmt: skip
    """Two curves given by their values, in the form of `chart_data`.

    Args:
        reference: Values by iteration, non-finite ones included.
        other: The same of the other one.
        names: What the two lines are called.
        metric: Column name.
        noise_rel: Relative difference up to which they are the same.
        real_rel: Relative difference from which on they surely differ.
        onset: First iteration that surely differs; None: none does.
    """
    x = sorted({*reference, *other})
    sides = (reference, other)
    return {
        "names": list(names),
        "panels": [
            {
                "metric": metric_name(metric),
                "label": axis_label(metric),
                "on": "iteration",
                "x": x,
                "values": [[_number(side.get(at)) for at in x] for side in sides],
                "gone": [[at for at in side if _number(side[at]) is None] for side in sides],
                "noise": [[at, noise_rel] for at in (x[0], x[-1])] if x and math.isfinite(noise_rel) else [],
                "real": [[at, real_rel] for at in (x[0], x[-1])] if x and math.isfinite(real_rel) else [],
                "source": "repeats",
                "onsets": [onset],
                "is_different": onset is not None,
            }
        ],
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _thinned(values: "pl.DataFrame", most: int) -> "pl.DataFrame":
    """No more than about so many rows: of each stretch the lowest and the highest, and the first and the last row."""
    import polars as pl

    if values.height <= most:
        return values
    stretch = values.with_row_index("row").with_columns(part=pl.col("row") * (most // 2) // values.height)
    ends = stretch.group_by("part").agg(
        pl.col("row").sort_by("value").first().alias("low"), pl.col("row").sort_by("value").last().alias("high")
    )
    kept = {0, values.height - 1, *ends["low"].to_list(), *ends["high"].to_list()}
    return values[sorted(kept)]


def _panel(panel: Panel) -> dict[str, object]:
    import polars as pl

    frames = [rows for rows in panel.rows if rows is not None]
    on = pl.concat([rows.select("iteration") for rows in frames]).unique().sort("iteration")
    baseline = pl.concat([rows.select("iteration", "baseline", "baseline_state") for rows in frames])
    sides = [baseline.unique("iteration", keep="first").rename({"baseline": "value", "baseline_state": "state"})]
    for rows in panel.rows:
        side = frames[0].clear() if rows is None else rows
        sides.append(side.select("iteration", value="candidate", state="candidate_state"))
    widest, noise = max(
        ((rows, noise) for rows, noise in zip(panel.rows, panel.noise, strict=True) if rows is not None and noise),
        key=lambda item: item[1].surely_real_rel,
    )
    laid = [on.join(side, on="iteration", how="left", maintain_order="left") for side in sides]
    floor = on.join(widest.select("iteration", "noise_rel", "real_rel"), on="iteration", how="left").sort("iteration")
    return {
        "metric": metric_name(panel.metric),
        "label": panel.label,
        "on": panel.on,
        "x": on["iteration"].to_list(),
        "values": [_finite(side["value"]) for side in laid],
        "gone": [
            side.filter(pl.col("state").is_not_null() & (pl.col("state") != "finite"))["iteration"].to_list()
            for side in laid
        ],
        "noise": _corners(floor.select("iteration", "noise_rel").drop_nulls()),
        "real": _corners(floor.select("iteration", "real_rel").drop_nulls()),
        "source": noise.source,
        "onsets": list(panel.onsets),
        "is_different": panel.is_different,
    }


def _has_values(panel: Panel) -> bool:
    return any(item is not None and item.iterations for item in panel.differences) or any(
        rows is not None and rows["baseline"].is_not_null().any() for rows in panel.rows
    )


def _finite(values: "pl.Series") -> list[float | None]:
    return [_number(value) for value in values.to_list()]


def _corners(floor: "pl.DataFrame") -> list[list[float]]:
    """The points between which a line through all points is straight, the first and the last included."""
    import numpy as np

    x, y = (floor[:, column].cast(float).to_numpy() for column in (0, 1))
    if len(x) < 3:
        return [list(map(float, point)) for point in zip(x, y, strict=True)]
    slopes = np.diff(y) / np.diff(x)
    bends = np.abs(np.diff(slopes)) > 1e-6 * max(np.abs(slopes).max(), 1e-300)
    kept = np.flatnonzero(np.concatenate([[True], bends, [True]]))
    return [[float(x[i]), float(y[i])] for i in kept]
