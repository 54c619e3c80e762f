"""What the rows of a log mean together: windows, NaN, false zeros, cut rows, and the mended second row.

Pure: a frame of rows as printed goes in, a frame of what they say comes out, with notes on every change.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lossbisect.parsers.records import (
    ELAPSED_COLUMN,
    LOSS_COLUMN,
    NAN_COLUMN,
    SKIPPED_COLUMN,
    THROUGHPUT_COLUMN,
    is_loss_column,
)
from lossbisect.parsers.runlog import Note
from lossbisect.parsers.second_row import RowTime, decide, mend

if TYPE_CHECKING:
    import polars as pl

__all__ = ["HEAD_ROWS", "AttemptFacts", "Meaning", "gives_meaning", "with_meaning"]

HEAD_ROWS = 2
"""So many of an attempt's first rows need their own clocks."""

_MOST_CUT_NOTES = 20
_RL = "rl_"  # reinforcement learning: its means may be below zero
_NEVER = 2**62  # later than any iteration


_GIVES_MEANING = frozenset({ELAPSED_COLUMN, LOSS_COLUMN, NAN_COLUMN, SKIPPED_COLUMN, THROUGHPUT_COLUMN})


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptFacts:
    """What a log says of an attempt outside its rows.

    Attributes:
        index: Number of the attempt.
        has_start: Whether the log holds its start, so that the first row is the first that the process printed.
        resumed_at: The iteration that it went on from; 0 for a fresh start, None if unknown.
        log_interval: Iterations from row to row, from the configuration; None if unknown.
        version: Megatron-Core's version, None if unknown.
        stamps: The own clocks of its first rows, ``""`` where a row has none.
    """

    index: int
    has_start: bool
    resumed_at: int | None
    log_interval: int | None
    version: str | None
    stamps: tuple[str, ...]

    @property
    def has_microseconds(self) -> bool:
        """Whether its rows are stamped as core_v0.16.0 and later do."""
        return bool(self.stamps) and "." in self.stamps[0]


class Meaning(NamedTuple):
    """The frame with meaning, and what was done to it."""

    frame: "pl.DataFrame"
    notes: list[Note]


def gives_meaning(column: str) -> bool:
    """Whether what other columns mean depends on a column."""
    return column in _GIVES_MEANING or column.startswith(_RL)


def with_meaning(frame: "pl.DataFrame", facts: list[AttemptFacts], *, resets_every_row: bool) -> Meaning:
    """Rows as printed to rows as meant, in the same order.

    Args:
        frame: One row a record, with ``iteration``, ``attempt``, ``total``, ``is_complete``, ``line_no``
            and the printed keys as Float64.
        facts: One for each attempt.
        resets_every_row: Whether the trainer never carries the first row's sums into the second.

    Returns:
        The frame without ``total`` and with ``window``.
    """
    import polars as pl

    missing = [name for name in (LOSS_COLUMN, SKIPPED_COLUMN, ELAPSED_COLUMN) if name not in frame.columns]
    frame = frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in missing)
    notes: list[Note] = []
    frame = _mark_cut(frame, notes)
    frame = _with_log_interval(frame, facts)
    frame = frame.with_columns(pl.lit(0, pl.Int64).alias("_carried"))
    if not resets_every_row:
        frame = _mend_second_rows(frame, facts, notes)
    frame = _with_window(frame)
    frame = _with_nan(frame, notes)
    _note_overlap(frame, notes)
    helpers = [name for name in frame.columns if name.startswith("_")]
    return Meaning(frame=frame.drop("total", *helpers), notes=notes)


def _mark_cut(frame: "pl.DataFrame", notes: list[Note]) -> "pl.DataFrame":
    """A row without the closing counter is cut, too, if the other rows of its attempt have one."""
    import polars as pl

    if NAN_COLUMN in frame.columns:
        has_counter = pl.col(NAN_COLUMN).is_not_null()
        is_complete = pl.col("is_complete") & (has_counter | ~has_counter.any().over("attempt"))
        frame = frame.with_columns(is_complete.alias("is_complete"))
    cut = frame.filter(~pl.col("is_complete"))["line_no"].to_list()
    text = "The row was cut; only the fields that were whole are kept."
    notes.extend(Note(line_no=line_no, kind="cut-row", text=text) for line_no in cut[:_MOST_CUT_NOTES])
    if len(cut) > _MOST_CUT_NOTES:
        more = f"{len(cut) - _MOST_CUT_NOTES} more rows were cut."
        notes.append(Note(line_no=cut[_MOST_CUT_NOTES], kind="cut-row", text=more))
    return frame


def _with_log_interval(frame: "pl.DataFrame", facts: list[AttemptFacts]) -> "pl.DataFrame":
    """Add what the log says outside the rows, and ``_interval``, the iterations from row to row, null if unknown.

    Rows are printed where the interval divides the iteration (and, since core_v0.16.0, at the first one of a process,
    so that one is left out). So the interval divides the greatest common divisor of the iterations, and nearly always
    is that.
    """
    import numpy as np
    import polars as pl

    by_index = {fact.index: fact for fact in facts}
    intervals: dict[int, int | None] = {}
    for (attempt,), rows in frame.select("attempt", "iteration").group_by("attempt", maintain_order=True):
        index = int(str(attempt))
        iterations = rows["iteration"].to_numpy()
        if by_index[index].has_microseconds:
            iterations = iterations[1:]
        divisor = int(np.gcd.reduce(iterations))
        intervals[index] = by_index[index].log_interval or (divisor if len(iterations) > 1 or divisor == 1 else None)
    table = pl.DataFrame(
        [
            (
                fact.has_start,
                fact.has_start and fact.has_microseconds,
                fact.resumed_at,
                intervals.get(fact.index),
            )
            for fact in facts
        ],
        schema={
            "_has_start": pl.Boolean,
            "_prints_first": pl.Boolean,
            "_resumed_at": pl.Int64,
            "_interval": pl.Int64,
        },
        orient="row",
    )
    return frame.hstack(table[frame["attempt"]])  # not a join, which would copy every column


def _mend_second_rows(frame: "pl.DataFrame", facts: list[AttemptFacts], notes: list[Note]) -> "pl.DataFrame":
    """Undo the mean in the second row of each start, where it is one (`second_row`)."""
    import polars as pl

    losses = [name for name in frame.columns if is_loss_column(name)]
    by_index = {fact.index: fact for fact in facts}
    mended: dict[str, dict[int, float | None]] = {}
    heads = frame.select("attempt").with_row_index("_row").group_by("attempt", maintain_order=True).head(HEAD_ROWS)
    for _, head in heads.group_by("attempt", maintain_order=True):
        # One row at a time: to gather rows from all columns would copy them.
        rows = [frame.row(row, named=True) for row in head["_row"]]
        if len(rows) < HEAD_ROWS or not all(row["is_complete"] for row in rows):
            continue
        first, second = rows
        second_row = head["_row"][1]
        fact = by_index[first["attempt"]]
        decision = decide(
            _row_time(first, fact.stamps[0]),
            _row_time(second, fact.stamps[1]),
            version=fact.version,
            is_process_start=first["_has_start"] or first["iteration"] == 1 or first["attempt"] > 0,
        )
        if decision.is_mean is False:
            continue
        where = f"iterations {first['iteration']} to {second['iteration']} ({decision.reason})"
        if decision.is_mean is None:
            text = f"Iteration {second['iteration']} may be the mean of {where}; it was left as printed."
            notes.append(Note(line_no=second["line_no"], kind="row-2-undecided", text=text))
        elif first["_interval"] == 1 and second["iteration"] == first["iteration"] + 1:
            for name, value in mend(first, second, losses).items():
                mended.setdefault(name, {})[second_row] = value
            text = (
                f"Iteration {second['iteration']} was printed as the mean of {where}; its own values were worked out."
            )
            notes.append(Note(line_no=second["line_no"], kind="row-2-mean", text=text))
        else:
            mended.setdefault("_carried", {})[second_row] = second["iteration"] - first["iteration"] + 1
    for name, values in mended.items():
        new = pl.Series(list(values.values()), dtype=pl.Float64).cast(frame[name].dtype)
        frame = frame.with_columns(frame[name].scatter(list(values), new).alias(name))
    return frame


def _with_window(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Add ``window``: iterations that a row covers, less those that were skipped."""
    import polars as pl

    iteration, interval = pl.col("iteration"), pl.col("_interval")
    since_resume = iteration - pl.col("_resumed_at")
    # Since core_v0.16.0 (which prints microseconds) a process prints its first iteration alone.
    first = (
        pl.when(since_resume.is_between(1, interval.fill_null(since_resume)))
        .then(since_resume)
        .when((iteration == 1) | (interval == 1) | pl.col("_prints_first"))
        .then(1)
        .when(iteration <= interval)
        .then(iteration)
        .when(iteration % interval == 0)
        .then(interval)
    )
    between = iteration.diff().over("attempt")
    covered = (
        pl.when(pl.col("_carried") > 0)
        .then("_carried")
        .otherwise(pl.min_horizontal(between, interval))  # a row that isn't there leaves a gap, not a longer window
    )
    skipped = pl.coalesce(SKIPPED_COLUMN, pl.when("is_complete").then(0.0))
    is_first = between.is_null()
    window = (pl.when(is_first).then(first).otherwise(covered) - skipped).clip(lower_bound=0)
    return frame.with_columns(window.cast(pl.Int64).alias("window"))


def _with_nan(frame: "pl.DataFrame", notes: list[Note]) -> "pl.DataFrame":
    """Tell a loss that went NaN (printed by leaving it out) from one that isn't there, and drop false zeros."""
    import polars as pl

    losses = [name for name in frame.columns if is_loss_column(name)]
    skipped = pl.col(SKIPPED_COLUMN).fill_null(0.0)
    nothing_advanced = pl.when(pl.col("window").is_not_null()).then(pl.col("window") == 0).otherwise(skipped > 0)
    frame = frame.with_columns(
        pl.when((pl.col(name) == 0.0) & nothing_advanced).then(pl.lit(None)).otherwise(pl.col(name)).alias(name)
        for name in losses
    )
    if any(name.startswith(_RL) for name in frame.columns):
        return frame  # a mean below zero isn't printed either
    is_logged = {name: pl.col(name).is_not_null().any().over("total") for name in losses}
    went_nan = pl.col(LOSS_COLUMN).is_null() & is_logged[LOSS_COLUMN] & pl.col("is_complete") & ~nothing_advanced
    frame = frame.with_columns(went_nan.alias("_went_nan"))
    lost = frame.filter("_went_nan")
    if lost.height:
        text = (
            f"The loss went NaN: Megatron prints that by leaving the field out, here in {lost.height} "
            f"row{'s' if lost.height > 1 else ''} of which iteration {lost['iteration'][0]} is the first."
        )
        notes.append(Note(line_no=lost["line_no"][0], kind="nan-loss", text=text))
    nan = pl.lit(float("nan"))
    return frame.with_columns(
        pl.when(pl.col("_went_nan") & pl.col(name).is_null() & is_logged[name]).then(nan).otherwise(name).alias(name)
        for name in losses
    )


def _note_overlap(frame: "pl.DataFrame", notes: list[Note]) -> None:
    """Say how iterations that a resume printed again differ from the first time; a run begun anew is no resume."""
    import polars as pl

    if frame["attempt"].n_unique() < 2:
        return
    iteration = pl.col("iteration")
    spans = frame.group_by("attempt").agg(first=iteration.min(), end=iteration.max()).sort("attempt")
    spans = spans.select(
        "attempt",
        "first",
        ends_before=pl.col("end").cum_max().shift(1, fill_value=-1),
        starts_after=pl.col("first").cum_min(reverse=True).shift(-1),
    )
    # Few rows are left where a run went on; of all rows, what follows would take more memory than the table.
    near = frame.select("attempt", "iteration").join(spans, on="attempt", maintain_order="left")
    is_near = near.select(
        (iteration <= pl.col("ends_before")) | (iteration >= pl.col("starts_after").fill_null(_NEVER))
    ).to_series()
    del near
    rows = frame.select("total", "iteration", "attempt", "line_no", LOSS_COLUMN).filter(is_near)
    rows = rows.join(spans.select("attempt", "first"), on="attempt", maintain_order="left")
    rows = rows.with_columns(last=pl.col("line_no") == pl.col("line_no").max().over("total", "iteration"))
    again = rows.filter("last").join(rows.filter(~pl.col("last")), on=["total", "iteration"], maintain_order="left")
    again = again.filter(pl.col("first") > pl.col("first_right"))
    if again.is_empty():
        return
    before, after = pl.col(f"{LOSS_COLUMN}_right"), pl.col(LOSS_COLUMN)
    differs = again.filter(before.is_not_null() & after.is_not_null() & (before != after))
    largest = differs.select(((after - before).abs() / before.abs()).fill_nan(None).max()).item()
    how = f"differs in {differs.height}, by up to {largest:.2g} relative" if largest is not None else "is the same"
    text = f"{again.height} rows repeat an iteration of an earlier attempt; the loss {how}. Both are kept."
    notes.append(Note(line_no=again["line_no"][0], kind="resume-overlap", text=text))


def _row_time(row: dict[str, object], stamp: str) -> RowTime:
    iteration, elapsed = row["iteration"], row[ELAPSED_COLUMN]
    assert isinstance(iteration, int)
    return RowTime(iteration=iteration, stamp=stamp, elapsed_ms=elapsed if isinstance(elapsed, float) else None)
