"""From a loss that a commit moved to the commit: which repository, then which of its commits."""

from typing import TYPE_CHECKING, Protocol

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.commits import commit_info, commit_range
from lossbisect.bisect.culprit import Answer
from lossbisect.bisect.names import pin_of
from lossbisect.bisect.repository import ask, is_ancestor
from lossbisect.bisect.scope import Searched
from lossbisect.bisect.types import CommitInfo
from lossbisect.compare.wording import counted
from lossbisect.errors import LossbisectError
from lossbisect.train.types import Outcome
from lossbisect.triage.bench import Bench
from lossbisect.triage.classify import Change, change_of
from lossbisect.triage.types import Axis, Blame, Case, Curve, Point

if TYPE_CHECKING:
    from lossbisect.bisect.culprit import BisectResult

__all__ = ["Bisect", "blame", "is_pinned", "suspects"]


class Bisect(Protocol):
    """What bisects."""

    def __call__(self, case: Case, good: Point, bad: Point, *, searched: Searched, is_fresh: bool) -> "BisectResult":
        """Find the commit between two points.

        Args:
            case: What is trained.
            good: The older point.
            bad: The newer one.
            searched: Megatron-Core with Bridge held at the newer point, or Bridge's commits each with its own pin.
            is_fresh: No run of the store will do.

        Raises:
            LossbisectError: It came to no end.
        """
        ...


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
        bisect: Bisects.
    """
    axis = _axis(case, reference, tip, curves, noise_rel, bench)
    found = suspects(code, axis, reference, tip)
    if axis is Axis.MCORE and not found:  # Bridge's pin moved back, or to another branch
        found, axis = suspects(code, Axis.BRIDGE, reference, tip), Axis.BRIDGE
    if len(found) == 1:
        reason = "the only commit in between; it and the one before it were run again"
        return Blame(axis=axis, commits=found, is_confirmed=True, reason=reason)
    searched = Searched.MCORE if axis is Axis.MCORE else Searched.BRIDGE
    if searched is Searched.BRIDGE and not (is_pinned(code, reference) and is_pinned(code, tip)):
        moved = "Bridge and Megatron-Core moved" if axis is Axis.BOTH else "Bridge moved with Megatron-Core held"
        reason = f"{moved}, and not along Bridge's own pins: one of {counted(len(found), 'commit')}"
        return Blame(axis=axis, commits=found, is_confirmed=False, reason=reason)
    try:
        result = bisect(case, reference, tip, searched=searched, is_fresh=is_drifted)
    except LossbisectError as error:
        return Blame(axis=axis, commits=found, is_confirmed=False, reason=f"the bisect came to no end: {error}")
    named = (result.culprit.commit,) if result.culprit else result.candidates or found
    if searched is Searched.BRIDGE:
        own = {commit.sha for commit in suspects(code, Axis.BRIDGE, reference, tip)}
        whose = {commit.sha in own for commit in named}
        axis = Axis.BOTH if len(whose) > 1 else Axis.BRIDGE if whose == {True} else Axis.MCORE
    return Blame(
        axis=axis,
        commits=named,
        is_confirmed=result.answer is Answer.FOUND,
        reason=result.finding.reason,
        bisect_id=result.id,
    )


def is_pinned(code: CodeBase, point: Point) -> bool:
    """Whether a point is a commit of Bridge with the Megatron-Core that it pins: Bridge's own history."""
    return code.bridge is not None and point.bridge is not None and pin_of(code.bridge, point.bridge) == point.mcore


def suspects(code: CodeBase, axis: Axis, reference: Point, tip: Point) -> tuple[CommitInfo, ...]:
    """The commits of an axis after a point up to and with another, oldest first.

    Where Bridge moved, Megatron-Core may have moved back or to another branch: then none of its commits lie in between.

    Raises:
        GitError: One doesn't come after the other.
    """
    found: tuple[CommitInfo, ...] = ()
    if axis in (Axis.BRIDGE, Axis.BOTH) and code.bridge is not None and reference.bridge != tip.bridge:
        line = ask(code.bridge, "rev-list", "--first-parent", "--reverse", f"{reference.bridge}..{tip.bridge}").split()
        found += tuple(commit_info(code.bridge, sha) for sha in line)
    is_later = reference.bridge == tip.bridge or is_ancestor(code.mcore, reference.mcore, tip.mcore)
    if axis in (Axis.MCORE, Axis.BOTH) and reference.mcore != tip.mcore and is_later:
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
