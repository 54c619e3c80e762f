"""The data of a page's charts: plain values, as ``assets/page.js`` reads them."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lossbisect.compare.types import Judgement
from lossbisect.compare.wording import metric_name
from lossbisect.report.panels import Panel, panels_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["chart_data"]


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
    return [value if value is not None and math.isfinite(value) else None for value in values.to_list()]


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
