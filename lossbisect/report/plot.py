"""A judgement as a picture: both curves, and below them their relative difference with the noise floor."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.compare.stats import classify
from lossbisect.compare.types import Comparison, Judgement, Verdict
from lossbisect.compare.wording import metric_name
from lossbisect.errors import LossbisectError

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

__all__ = ["EXTENSIONS", "check_plot_path", "draw"]

EXTENSIONS = (".png", ".svg", ".pdf")

_INK = "#1f2430"
_QUIET = "#6b7280"
_BASELINE = "#2563a8"
_CANDIDATE = "#d9622b"
_NOISE = "#9aa5b1"
_MARKED = "#b3261e"
_VERDICT = {Verdict.SAME: "#2e7d32", Verdict.DIVERGED: _MARKED, Verdict.UNDECIDED: "#9a6b00"}
_ROWS_WITH_MARKERS = 60
_ROWS_WITH_THICK_LINES = 1000
_MOST_POINTS = 4000
_WIDTH_CHARS = 108


def check_plot_path(path: Path) -> None:
    """Refuse a file that can't be drawn to.

    Raises:
        ValueError: An unknown extension, or a folder that isn't there or can't be written to.
    """
    if path.suffix.lower() not in EXTENSIONS:
        raise ValueError(f"'{path.name}' must end in {', '.join(EXTENSIONS[:-1])} or {EXTENSIONS[-1]}.")
    if path.is_dir():
        raise ValueError(f"'{path}' is a folder.")
    if not path.parent.is_dir():
        raise ValueError(f"The folder '{path.parent}' does not exist.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"'{path}' is not writable.")


def draw(judgement: Judgement, path: Path) -> None:
    """Write the picture, in the format of the extension.

    Raises:
        ValueError: A path that `check_plot_path` refuses.
        LossbisectError: The file could not be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_plot_path(path)
    comparison = judgement.comparison
    figure = Figure(figsize=(9.6, 6.4), dpi=150, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    curves_axes, difference_axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    rows = classify(comparison.curves, comparison.noise)
    _draw_curves(curves_axes, rows, comparison)
    _draw_difference(difference_axes, rows, comparison)
    for axes in (curves_axes, difference_axes):
        _tidy(axes)
    _mark_onset(curves_axes, difference_axes, comparison)
    figure.suptitle(
        _title(judgement), x=0.012, ha="left", fontsize=10.5, color=_VERDICT[judgement.verdict], fontweight="bold"
    )
    try:
        figure.savefig(path)
    except OSError as error:
        raise LossbisectError(f"{path}: the plot could not be written ({error.strerror}).") from error


def _title(judgement: Judgement) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(f"{judgement.verdict.value.upper()}: {judgement.reason}", _WIDTH_CHARS))


def _draw_curves(axes: "Axes", rows: "pl.DataFrame", comparison: Comparison) -> None:
    sides = (
        ("baseline", comparison.baseline, _BASELINE, "-", 2.6, 0.55, 6.5),
        ("candidate", comparison.candidate, _CANDIDATE, "-", 1.3, 1.0, 3.2),
    )
    for side, name, colour, style, width, alpha, size in sides:
        x, y = _points(rows, side)
        axes.plot(
            x,
            y,
            style,
            color=colour,
            lw=width if len(x) <= _ROWS_WITH_THICK_LINES else width / 2.5,
            alpha=alpha,
            marker="o" if len(x) <= _ROWS_WITH_MARKERS else None,
            markersize=size,
            markeredgewidth=0,
            label=f"{side}: {_short(name)}",
        )
        gone = rows.filter(rows[f"{side}_state"] != "finite")["iteration"].to_list()
        if gone:
            at = [0.12 if side == "baseline" else 0.16] * len(gone)
            axes.plot(
                gone, at, "x", color=colour, transform=axes.get_xaxis_transform(), label=f"{side}: no finite value"
            )
    axes.set_ylabel(metric_name(comparison.curves.metric))
    axes.legend(loc="upper right", frameon=False, fontsize=8.5)


def _draw_difference(axes: "Axes", rows: "pl.DataFrame", comparison: Comparison) -> None:
    noise = comparison.noise
    x, y = _points(rows, "relative")
    band = _thinned(rows.select("iteration", "noise_rel", "real_rel"))
    edges = band["iteration"].to_list()
    if len(edges) == 1:
        edges, band = [edges[0] - 0.5, edges[0] + 0.5], band.sample(2, with_replacement=True)
    if noise.surely_real_rel > noise.surely_noise_rel:
        real = band["real_rel"].to_numpy()
        axes.fill_between(edges, -real, real, color=_NOISE, alpha=0.16, lw=0, label="undecided")
    if noise.surely_noise_rel > 0:
        sure = band["noise_rel"].to_numpy()
        axes.fill_between(edges, -sure, sure, color=_NOISE, alpha=0.38, lw=0, label=noise.source)
    axes.axhline(0, color=_QUIET, lw=0.8)
    axes.plot(
        x,
        y,
        "-",
        color=_INK,
        lw=1.1 if len(x) <= _ROWS_WITH_THICK_LINES else 0.5,
        marker="o" if len(x) <= _ROWS_WITH_MARKERS else None,
        markersize=3.2,
        markeredgewidth=0,
    )
    largest = comparison.difference.largest_rel or 0.0
    threshold = noise.surely_noise_rel or max(largest / 100, 1e-7)
    axes.set_yscale("symlog", linthresh=threshold, linscale=0.6)
    limit = max(largest, noise.surely_real_rel, threshold) * 2.5
    axes.set_ylim(-limit, limit)
    axes.set_yticks(_ticks(threshold, limit))
    axes.minorticks_off()
    axes.set_ylabel("relative difference")
    axes.set_xlabel("iteration")
    if axes.get_legend_handles_labels()[0]:
        is_above = (comparison.difference.shift_rel or 0) > 0
        axes.legend(loc="lower left" if is_above else "upper left", frameon=False, fontsize=8.5, ncols=2)


def _ticks(threshold: float, limit: float) -> list[float]:
    """Zero and powers of ten beyond the linear part, on both sides, five a side at most."""
    powers = list(range(math.ceil(math.log10(threshold) - 1e-9), math.floor(math.log10(limit) + 1e-9) + 1))
    powers = powers[:: -(-len(powers) // 4) or 1]
    sizes = [10.0**power for power in powers]
    return [*(-size for size in reversed(sizes)), 0.0, *sizes]


def _mark_onset(curves_axes: "Axes", difference_axes: "Axes", comparison: Comparison) -> None:
    onset = comparison.difference.first_divergent
    if onset is None:
        return
    for axes in (curves_axes, difference_axes):
        axes.axvline(onset, color=_MARKED, lw=1.0, ls=(0, (4, 3)), zorder=0)
    first, last = curves_axes.get_xlim()
    is_late = onset > first + 0.7 * (last - first)
    curves_axes.annotate(
        f"diverges at {onset}",
        (onset, 0.03),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if is_late else 5, 0),
        textcoords="offset points",
        ha="right" if is_late else "left",
        va="bottom",
        color=_MARKED,
        fontsize=8.5,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.5},
    )


def _tidy(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_QUIET)
    axes.tick_params(colors=_QUIET, labelsize=8.5)
    axes.yaxis.label.set_color(_INK)
    axes.xaxis.label.set_color(_INK)
    axes.grid(axis="y", color="#e5e7eb", lw=0.7)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10, min_n_ticks=1))
    axes.margins(x=0.015)


def _points(rows: "pl.DataFrame", column: str) -> tuple[list[int], list[float]]:
    """Iterations and values for a line that breaks where a value is missing."""
    thin = _thinned(rows.select("iteration", column))
    values = thin[column].to_list()
    return thin["iteration"].to_list(), [
        value if value is not None and math.isfinite(value) else math.nan for value in values
    ]


def _thinned(rows: "pl.DataFrame") -> "pl.DataFrame":
    """Few enough rows to draw, keeping each stretch's extremes so that no spike is lost."""
    import polars as pl

    if rows.height <= _MOST_POINTS:
        return rows
    value = rows.columns[1]
    stretch = pl.int_range(pl.len()) // -(-rows.height // (_MOST_POINTS // 2))
    numbered = rows.with_row_index("row").with_columns(stretch.alias("stretch"))
    extremes = numbered.group_by("stretch").agg(
        pl.col("row").get(pl.col(value).fill_null(0).fill_nan(0).arg_min()).alias("low"),
        pl.col("row").get(pl.col(value).fill_null(0).fill_nan(0).arg_max()).alias("high"),
    )
    kept = pl.concat([extremes["low"], extremes["high"]]).unique()
    return numbered.filter(pl.col("row").is_in(kept.implode())).select(rows.columns)


def _short(name: str) -> str:
    """A file's name; with its folder, as two logs are often called the same."""
    path = Path(name)
    text = str(Path(*path.parts[-2:])) if path.parts else name
    return text if len(text) <= 60 else "…" + text[-59:]
