"""Where two runs end, and whether the shorter one was meant to end there.

A log that stops in the middle of a row, before the iteration that its own rows announce, or with a failure may hide
anything in the rows that aren't there. Such a pair is never called the same over the rows that both have, unless the
user asks for these rows only (``--to``). A run that was planned shorter is.
"""

from collections.abc import Sequence
from itertools import pairwise

from lossbisect.compare.middle import median
from lossbisect.compare.types import Ends
from lossbisect.compare.wording import iteration_list
from lossbisect.parsers.runlog import RunLog

__all__ = ["ends_of", "ends_of_groups"]

_ROWS_FOR_A_DISTANCE = 5
"""Rows from which the usual distance from row to row can be told."""


def ends_of(baseline: RunLog, candidate: RunLog) -> Ends:
    """Where both runs end. Rows are whole ones; a log without any ends at iteration 0."""
    last = {"baseline": _last_whole(baseline), "candidate": _last_whole(candidate)}
    for side, other, log in (("candidate", "baseline", candidate), ("baseline", "candidate", baseline)):
        if last[side] < last[other]:
            cut = _cut(side, log, last[side], last[other])
            told = None if cut else f"the {other} goes on to iteration {last[other]}"
            hole = _hole(baseline, candidate)
            return Ends(baseline=last["baseline"], candidate=last["candidate"], cut=cut, told=told, hole=hole)
    return Ends(baseline=last["baseline"], candidate=last["candidate"], hole=_hole(baseline, candidate))


def ends_of_groups(baseline: Sequence[RunLog], candidate: Sequence[RunLog]) -> Ends:
    """The same of two groups of runs: each ends with its shortest run, and none may have been cut."""
    lasts = {
        side: [_last_whole(run) for run in runs] for side, runs in (("baseline", baseline), ("candidate", candidate))
    }
    longest = max(*lasts["baseline"], *lasts["candidate"])
    cut = next(
        (
            clause
            for side, runs in (("baseline", baseline), ("candidate", candidate))
            for run, last in zip(runs, lasts[side], strict=True)
            if last < longest and (clause := _cut(f"{side} {run.path.name}", run, last, longest))
        ),
        None,
    )
    return Ends(baseline=min(lasts["baseline"]), candidate=min(lasts["candidate"]), cut=cut)


def _cut(side: str, log: RunLog, last: int, other: int) -> str | None:
    """Why the shorter side isn't known to be whole, as a clause; None if it is, or if nothing speaks against it."""
    planned = log.planned_iterations
    if planned is not None and last >= planned:
        return None
    if log.failure is not None:
        return f"the {side} failed after iteration {last} of {other} ({log.failure.kind}: {log.failure.text})"
    rows = log.iterations.sort("line_no") if log.iterations["line_no"].null_count() == 0 else log.iterations
    if rows.height and not rows["is_complete"][-1]:
        return f"the log of the {side} is cut in iteration {rows['iteration'][-1]}, and the other reaches {other}"
    if planned is None or last + _interval(log) > planned:
        return None
    return (
        f"the log of the {side} ends at iteration {last} of the {planned} that it announces, without saying why (cut, "
        f"killed, or still running): say --to {last} to judge these iterations alone"
    )


def _hole(baseline: RunLog, candidate: RunLog) -> str | None:
    """Rows that one log has and the other lacks where, by its own distance from row to row, it should have them."""
    rows = {"baseline": _iterations(baseline), "candidate": _iterations(candidate)}
    for side, other in (("candidate", "baseline"), ("baseline", "candidate")):
        own, theirs = rows[side], rows[other]
        if len(own) < _ROWS_FOR_A_DISTANCE:
            continue
        usual = median(later - earlier for earlier, later in pairwise(own))
        gaps = [(earlier, later) for earlier, later in pairwise(own) if later - earlier > 1.5 * usual]
        lacking = [iteration for earlier, later in gaps for iteration in theirs if earlier < iteration < later]
        if lacking:
            return f"the log of the {side} has no row for {iteration_list(lacking)}, and the other has"
    return None


def _iterations(log: RunLog) -> list[int]:
    return sorted(set(log.iterations["iteration"].to_list()))


def _last_whole(log: RunLog) -> int:
    last = log.iterations.filter(log.iterations["is_complete"])["iteration"].max()
    return last if isinstance(last, int) else 0


def _interval(log: RunLog) -> int:
    """Iterations from row to row at the end of a log: a run may end so many before the iteration that it announces."""
    last = log.iterations["iteration"].unique().sort().tail(2).to_list()
    return max(1, last[-1] - last[0]) if len(last) > 1 else 1
