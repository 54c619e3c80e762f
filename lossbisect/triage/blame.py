"""From a loss that a commit moved to the commit: which repository, then which of its commits."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.commits import commit_info, commit_range
from lossbisect.bisect.culprit import Answer
from lossbisect.bisect.repository import ask
from lossbisect.bisect.types import CommitInfo
from lossbisect.compare.wording import counted
from lossbisect.errors import LossbisectError
from lossbisect.train.types import Outcome
from lossbisect.triage.bench import Bench
from lossbisect.triage.classify import Change, change_of
from lossbisect.triage.types import Axis, Blame, Case, Curve, Point

if TYPE_CHECKING:
    from lossbisect.bisect.culprit import BisectResult

__all__ = ["Bisect", "blame", "suspects"]

type Bisect = Callable[[Case, Point, Point, bool], BisectResult]
"""Bisects Megatron-Core for a case from a good point to a bad one; the last argument: take no run from the store."""


def blame(
    code: CodeBase, case: Case, reference: Point, tip: Point, *, curves: tuple[Curve, Curve], noise_rel: float,
    is_drifted: bool, bench: Bench, bisect: Bisect,
) -> Blame:  # fmt: skip
    """Name the commit between two points whose curves surely differ in one environment.

    Args:
        code: The checkout.
        case: What was trained.
        reference: The last point with the old curve.
        tip: The point with the new one.
        curves: Today's curves of both.
        noise_rel: Largest difference between repeats.
        is_drifted: Runs from the store can't be trusted, since the environment has changed.
        bench: Trains.
        bisect: Bisects Megatron-Core.
    """
    axis = _axis(case, reference, tip, curves, noise_rel, bench)
    found = suspects(code, axis, reference, tip)
    if axis is Axis.BOTH:
        reason = "neither the new Bridge with the old Megatron-Core nor the old pair gives the new curve"
        return Blame(axis=axis, commits=found, is_confirmed=False, reason=reason)
    if len(found) == 1:
        reason = "the only commit in between; it and the one before it were run again"
        return Blame(axis=axis, commits=found, is_confirmed=True, reason=reason)
    if axis is Axis.BRIDGE:
        reason = f"one of {counted(len(found), 'commit')} of Bridge, with Megatron-Core held where it was"
        return Blame(axis=axis, commits=found, is_confirmed=False, reason=reason)
    if tip.bridge != code.bridge_commit:
        reason = f"check Bridge out at {tip.bridge} to bisect {counted(len(found), 'commit')}"
        return Blame(axis=axis, commits=found, is_confirmed=False, reason=reason)
    try:
        result = bisect(case, reference, tip, is_drifted)
    except LossbisectError as error:
        return Blame(axis=axis, commits=found, is_confirmed=False, reason=f"the bisect came to no end: {error}")
    named = (result.culprit.commit,) if result.culprit else result.candidates or found
    return Blame(
        axis=axis,
        commits=named,
        is_confirmed=result.answer is Answer.FOUND,
        reason=result.finding.reason,
        bisect_id=result.id,
    )


def suspects(code: CodeBase, axis: Axis, reference: Point, tip: Point) -> tuple[CommitInfo, ...]:
    """The commits of an axis after a point up to and with another, oldest first.

    Raises:
        GitError: One doesn't come after the other.
    """
    found: tuple[CommitInfo, ...] = ()
    if axis in (Axis.BRIDGE, Axis.BOTH) and code.bridge is not None and reference.bridge != tip.bridge:
        line = ask(code.bridge, "rev-list", "--first-parent", "--reverse", f"{reference.bridge}..{tip.bridge}").split()
        found += tuple(commit_info(code.bridge, sha) for sha in line)
    if axis in (Axis.MCORE, Axis.BOTH) and reference.mcore != tip.mcore:
        found += commit_range(code, reference.mcore, tip.mcore).commits
    return found


def _axis(
    case: Case, reference: Point, tip: Point, curves: tuple[Curve, Curve], noise_rel: float, bench: Bench
) -> Axis:
    """Which repository moved the loss; where both moved, one run holds Megatron-Core fixed and moves Bridge alone."""
    if reference.bridge == tip.bridge:
        return Axis.MCORE
    if reference.mcore == tip.mcore:
        return Axis.BRIDGE
    record = bench.run(case, Point(mcore=reference.mcore, bridge=tip.bridge), is_fresh=True)
    if record.outcome is not Outcome.FINISHED:
        return Axis.BOTH
    mixed = bench.curve(case, record)
    before, after = (change_of(each, mixed, noise_rel, case.tolerance) for each in curves)
    if after == Change.SAME:
        return Axis.BRIDGE
    return Axis.MCORE if before == Change.SAME else Axis.BOTH
