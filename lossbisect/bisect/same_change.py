"""Whether what a merged branch does by itself is what its merge does."""

from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING

from lossbisect.bisect.culprit import BisectResult
from lossbisect.bisect.figures import FIGURES, figure_of
from lossbisect.bisect.judging import curve
from lossbisect.bisect.known import run_of, runs_at
from lossbisect.bisect.options import Regress
from lossbisect.bisect.signs import failure_sign
from lossbisect.bisect.symptom import Symptom, symptom_of

if TYPE_CHECKING:
    from lossbisect.bisect.chain import Chain

__all__ = ["is_same_change"]

_WITHOUT_SIZE = (Regress.NAN, Regress.REPEATABILITY)
"""Where it is the change that it came: nothing is to be added up."""


def is_same_change(chain: "Chain", outer: BisectResult, inner: BisectResult) -> bool:
    """Whether a branch makes its merge's change by itself.

    What it changes against the merge base, put on the merge's first parent, has to be what the merge changes, nearer
    than a third; a crash has to be the same crash.

    Args:
        chain: Reads the runs.
        outer: The search that found the merge.
        inner: The search from the merge base to the end of the branch.
    """
    regress, tip = outer.plan.search.regress, len(inner.commits.commits) - 1
    if regress in _WITHOUT_SIZE:
        return True
    if regress is Regress.CRASH:
        is_fix = outer.plan.search.find_fix
        failed = [
            run_of(outer.finding.steps, outer.finding.good if is_fix else outer.finding.bad),
            run_of(inner.finding.steps, -1 if is_fix else tip),
        ]
        one, other = (None if step is None else failure_sign(step.record) for step in failed)
        return one is not None and other is not None and one.is_like(other)
    good, bad = (_shown(chain, outer, index) for index in (outer.finding.good, outer.finding.bad))
    base, end = (_shown(chain, inner, index) for index in (-1, tip))
    if end == bad or not (good and bad and base and end):
        return True
    moved = {i: value + end[i] - base[i] for i, value in good.items() if i in base and i in end}
    return symptom_of(good, bad, moved) is Symptom.SAME


def _shown(chain: "Chain", result: BisectResult, index: int) -> Mapping[int, float]:
    """What a commit shows, by iteration; of figures the median over its runs, at iteration 1."""
    regress = result.plan.search.regress
    if regress not in FIGURES:
        step = run_of(result.finding.steps, index)
        return {} if step is None else curve(chain.read(step.record), result.plan.metric)
    logs = [chain.read(step.record) for step in runs_at(result.finding.steps, index)]
    figures = [figure for log in logs if (figure := figure_of(log, regress)) is not None]
    return {1: median(figures)} if figures else {}
