"""Judgements as a picture: curves, their relative difference with the noise floor, and below them the witnesses."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossbisect.compare.types import Judgement, NoiseFloor, Verdict
from lossbisect.compare.wording import counted
from lossbisect.errors import LossbisectError
from lossbisect.report.panels import Panel, panels_of, short_names

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["EXTENSIONS", "check_plot_path", "draw", "draw_many"]

EXTENSIONS = (".png", ".svg", ".pdf")

_INK = "#1b1f27"
_FRAME = "#5b6370"
_GRID = "#e4e7eb"
_NOISE = "#8a94a3"
_ALARM = "#b3261e"
_VERDICT = {Verdict.SAME: "#1b6e3c", Verdict.DIVERGED: _ALARM, Verdict.UNDECIDED: "#8a5a00"}
_BADNESS = (Verdict.SAME, Verdict.UNDECIDED, Verdict.DIVERGED)
_BASELINE = "#0072b2"
_CANDIDATES = ("#d55e00", "#009e73", "#a8478f", "#b07a00", "#3a9bd1", "#5b6370")
"""Okabe and Ito's colours, the light ones darkened: told apart with any colour vision, and seen on white paper."""
_MARKS = ("o", "s", "^", "D", "v", "P")
_MOST_WITNESSES = 3
_ROWS_WITH_MARKERS = 60
_ROWS_WITH_THICK_LINES = 1000
_ROWS_WITH_MEDIAN = 200
_MEDIAN_ROWS = 51
_MOST_POINTS = 4000
_WIDTH_CHARS = 104
_WIDTH_INCHES = 9.6
_STYLE = {"font.size": 9.5, "svg.fonttype": "none", "svg.hashsalt": "lossbisect", "axes.unicode_minus": True}


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
    """Write the picture of one judgement, as `draw_many` does."""
    draw_many([judgement], path)


def draw_many(judgements: Sequence[Judgement], path: Path) -> None:
    """Write one picture of judgements against the same baseline, in the format of the extension.

    From the top: the curves, the relative differences on a symmetric logarithmic axis over the noise floor, and the
    other columns that tell most.

    Raises:
        ValueError: A path that `check_plot_path` refuses.
        LossbisectError: The file could not be written.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_plot_path(path)
    judged, *others = panels_of(judgements)
    witnesses = _telling(others)
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        height = 6.1 + 1.25 * len(witnesses) + 0.2 * (len(judgements) - 1)
        figure = Figure(figsize=(_WIDTH_INCHES, height), dpi=150, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        ratios = (3.2, 2.0, *(1.0 for _ in witnesses))
        curves, relative, *small = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios, squeeze=True)
        _draw_curves(curves, judged)
        _draw_relative(relative, judged)
        for axes, panel in zip(small, witnesses, strict=True):
            _draw_curves(axes, panel)
        for axes in (curves, relative, *small):
            _tidy(axes)
        _mark_onsets((curves, relative, *small), judged)
        (curves, relative, *small)[-1].set_xlabel(judged.on)
        _head(figure, curves, judgements)
        try:
            figure.savefig(path)
        except OSError as error:
            raise LossbisectError(f"{path}: the plot could not be written ({error.strerror}).") from error


def _telling(panels: Sequence[Panel]) -> list[Panel]:
    """The witnesses to show: those that differ, and else the gradient norm; never a column without any value."""
    filled = [panel for panel in panels if any(item and item.iterations for item in panel.differences)]
    differing = [panel for panel in filled if panel.is_different]
    return (differing or [panel for panel in filled if panel.metric == "grad_norm"])[:_MOST_WITNESSES]


def _head(figure: "Figure", axes: "Axes", judgements: Sequence[Judgement]) -> None:
    """The verdict, and under it which line is whose."""
    import textwrap

    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    worst = max((judgement.verdict for judgement in judgements), key=_BADNESS.index)
    if len(judgements) == 1:
        text = f"{worst.value.upper()}: {judgements[0].reason}"
    else:
        counts = [(verdict, sum(item.verdict is verdict for item in judgements)) for verdict in reversed(_BADNESS)]
        text = ", ".join(f"{counted(n, 'run')} {verdict.value}" for verdict, n in counts if n)
    title = "\n".join(textwrap.wrap(_literal(text), _WIDTH_CHARS))
    figure.suptitle(title, x=0.012, ha="left", fontsize=11, color=_VERDICT[worst], fontweight="bold")
    comparisons = [judgement.comparison for judgement in judgements]
    names = short_names([comparisons[0].baseline, *(item.candidate for item in comparisons)])
    handles = [Line2D([], [], color=_BASELINE, lw=3.4, alpha=0.6, label=f"baseline  {_literal(names[0])}")]
    for number, (judgement, name) in enumerate(zip(judgements, names[1:], strict=True)):
        label = f"candidate  {name}" if len(judgements) == 1 else f"{name}  ({judgement.verdict.value})"
        handles.append(Line2D([], [], color=_colour(number), lw=1.6, marker=_mark(number), ms=4, label=_literal(label)))
    above_title = axes.transAxes + ScaledTranslation(0, 17 / 72, figure.dpi_scale_trans)
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        bbox_transform=above_title,
        borderaxespad=0,
        borderpad=0.2,
        frameon=False,
        ncols=2 if len(handles) > 2 else 1,
        labelcolor=_INK,
    )


def _draw_curves(axes: "Axes", panel: Panel) -> None:
    """Each side's values, and a cross at the bottom where a side has no finite one."""
    axes.set_title(_literal(panel.label)[:_WIDTH_CHARS], loc="left", fontsize=9.5, color=_INK)
    sides = [("baseline", rows, _BASELINE, 2.8, 0.6, "o", 5.5) for rows in panel.rows[:1] if rows is not None]
    sides += [
        ("candidate", rows, _colour(number), 1.4, 1.0, _mark(number), 3.4)
        for number, rows in enumerate(panel.rows)
        if rows is not None
    ]
    gaps: list[str] = []
    for number, (side, rows, colour, width, alpha, mark, size) in enumerate(sides):
        x, y = _points(rows, side)
        look = {"color": colour, "alpha": alpha, **_line(len(x), width, mark, size)}
        axes.plot(x, y, **look)
        gone = rows.filter(rows[f"{side}_state"] != "finite")["iteration"].to_list()
        if gone:
            axes.plot(gone, [0.05 + 0.05 * number] * len(gone), "x", color=colour, transform=axes.get_xaxis_transform())
            gaps.append(side)
    if gaps:
        _say(axes, f"crosses: no finite value in {', '.join(dict.fromkeys(gaps))}")


def _draw_relative(axes: "Axes", panel: Panel) -> None:
    """The relative differences over the noise floor, linear within it and logarithmic beyond."""
    import polars as pl

    axes.set_title("relative difference from the baseline", loc="left", fontsize=9.5, color=_INK)
    shown = [
        (number, rows, noise, difference)
        for number, (rows, noise, difference) in enumerate(zip(panel.rows, panel.noise, panel.differences, strict=True))
        if rows is not None and noise is not None and difference is not None
    ]
    widest = max((item[2] for item in shown), key=lambda noise: noise.surely_real_rel)
    _draw_noise(axes, next(item[1] for item in shown if item[2] is widest), widest)
    axes.axhline(0, color=_FRAME, lw=0.8)
    largest = max((item[3].largest_rel or 0.0 for item in shown), default=0.0)
    for number, rows, _, _ in shown:
        x, y = _points(rows, "relative")
        is_dense = rows.height >= _ROWS_WITH_MEDIAN
        alpha = 0.35 if is_dense else 1.0
        axes.plot(x, y, color=_colour(number), alpha=alpha, **_line(len(x), 1.3, _mark(number), 3.4))
        if is_dense:
            middle = _thinned(rows.select("iteration", pl.col("relative").rolling_median(_MEDIAN_ROWS, center=True)))
            label = f"median of {_MEDIAN_ROWS} rows" if number == shown[0][0] else None
            axes.plot(middle["iteration"], middle["relative"], color=_dark(_colour(number)), lw=1.3, label=label)
    threshold = widest.surely_noise_rel or max(largest / 100, 1e-7)
    axes.set_yscale("symlog", linthresh=threshold, linscale=0.6)
    limit = max(largest, widest.surely_real_rel, threshold) * 2.5
    axes.set_ylim(-limit, limit)
    axes.set_yticks(_ticks(threshold, limit))
    axes.minorticks_off()
    if axes.get_legend_handles_labels()[0]:
        look = {"frameon": False, "ncols": 3, "fontsize": 8.5, "labelcolor": _INK}
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1, borderpad=0.2, **look)


def _draw_noise(axes: "Axes", rows: "pl.DataFrame", noise: NoiseFloor) -> None:
    band = _thinned(rows.select("iteration", "noise_rel", "real_rel"))
    edges = band["iteration"].to_list()
    if len(edges) == 1:
        edges, band = [edges[0] - 0.5, edges[0] + 0.5], band.sample(2, with_replacement=True)
    for column, alpha, label, is_shown in (
        ("real_rel", 0.2, "undecided", noise.surely_real_rel > noise.surely_noise_rel),
        ("noise_rel", 0.45, _literal(f"noise: {noise.source}"), noise.surely_noise_rel > 0),
    ):
        if is_shown:
            size = band[column].to_numpy()
            axes.fill_between(edges, -size, size, color=_NOISE, alpha=alpha, lw=0, label=label)


def _ticks(threshold: float, limit: float) -> list[float]:
    """Zero and powers of ten beyond the linear part, on both sides, four a side at most."""
    powers = list(range(math.ceil(math.log10(threshold) - 1e-9), math.floor(math.log10(limit) + 1e-9) + 1))
    powers = powers[:: -(-len(powers) // 4) or 1]
    sizes = [10.0**power for power in powers]
    return [*(-size for size in reversed(sizes)), 0.0, *sizes]


def _mark_onsets(axes: "Sequence[Axes]", panel: Panel) -> None:
    """A dashed line through all panels at each first divergent iteration, named above the first one."""
    onsets = [(onset, number) for number, onset in enumerate(panel.onsets) if onset is not None]
    for onset, number in onsets:
        colour = _ALARM if len(panel.onsets) == 1 else _colour(number)
        for each in axes:
            each.axvline(onset, color=colour, lw=1.0, ls=(0, (4, 3)), zorder=0)
    if onsets:
        first = f"{panel.on} {min(onset for onset, _ in onsets)}"
        _say(axes[0], f"diverges from {first} on" if len(panel.onsets) == 1 else f"first divergence at {first}")


def _say(axes: "Axes", text: str) -> None:
    """Add a remark above a panel, on the right."""
    before = axes.get_title(loc="right")
    axes.set_title(f"{text}   {before}".strip(), loc="right", fontsize=8.5, color=_ALARM)


def _tidy(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FRAME)
    axes.tick_params(colors=_INK, labelsize=8.5, color=_FRAME)
    axes.xaxis.label.set_color(_INK)
    axes.grid(axis="y", color=_GRID, lw=0.7)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10, min_n_ticks=1))
    axes.margins(x=0.015)


def _line(rows: int, width: float, mark: str, size: float) -> dict[str, Any]:
    """How a line of so many points is drawn: with marks if they are few, thin if they are many."""
    return {
        "linestyle": "-",
        "linewidth": width if rows <= _ROWS_WITH_THICK_LINES else width / 2.5,
        "marker": mark if rows <= _ROWS_WITH_MARKERS else None,
        "markersize": size,
        "markeredgewidth": 0,
    }


def _colour(number: int) -> str:
    return _CANDIDATES[number % len(_CANDIDATES)]


def _dark(colour: str) -> tuple[float, ...]:
    """A colour's dark shade, seen on top of it."""
    from matplotlib.colors import to_rgb

    return tuple(0.55 * part for part in to_rgb(colour))


def _mark(number: int) -> str:
    return _MARKS[number % len(_MARKS)]


def _literal(text: str) -> str:
    """Text that matplotlib doesn't take for mathematics, on one line and without control characters."""
    return "".join(char if char.isprintable() else " " for char in text).replace("$", r"\$")


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
