"""What finished steps say, put together. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from lossbisect.bisect.types import BisectStep, CommitInfo, CommitVerdict, Role
from lossbisect.train.types import Outcome

__all__ = [
    "failed_in_a_row",
    "folded",
    "places_left",
    "reverts_of",
    "run_of",
    "runs_at",
    "unconfirmed_skips",
    "verdicts_of",
    "wavering",
]

_SEARCHED = (Role.SEARCH, Role.PROBE)
_APART = (Role.REVERTED, Role.WARM_UP)
"""Runs that don't show their commit: of other code, or of a cold machine."""
_WITH_CURVES = (Outcome.FINISHED, Outcome.CUT)


def verdicts_of(steps: Iterable[BisectStep]) -> dict[int, CommitVerdict]:
    """The verdict on each commit in between; of several runs the latest that could be judged counts.

    A commit that hasn't run has the verdict of a run that is its run too.
    """
    steps = list(steps)
    verdicts: dict[int, CommitVerdict] = {}
    for step in steps:
        if step.span is not None and step.role in (*_SEARCHED, Role.GOOD_END):
            verdicts |= dict.fromkeys(range(step.span[0], step.span[1] + 1), step.verdict)
    for step in steps:
        if step.role in _SEARCHED and not (step.verdict is CommitVerdict.SKIP and step.index in verdicts):
            verdicts[step.index] = step.verdict
    return verdicts


def folded(steps: Sequence[BisectStep]) -> list[int]:
    """Commits that haven't run, and whose run is known all the same, ascending."""
    ran = {step.index for step in steps}
    spans = {index for step in steps if step.span is not None for index in range(step.span[0], step.span[1] + 1)}
    return sorted(spans - ran)


def places_left(steps: Iterable[BisectStep], count: int) -> Sequence[int]:
    """The commits that may hold a change, ascending: all but those whose run is proven to be their parent's.

    Runs that don't read the same prove different spans: then only what all of them leave together is proven.

    Args:
        steps: Finished runs.
        count: Number of commits after the good end.
    """
    spans = {(step.index, step.span) for step in steps if step.span is not None}
    touching = sorted({edge for _, (first, last) in spans for edge in (first, last + 1)})
    same: set[int] = set()
    for index, _ in spans:
        place = bisect_right(touching, index)
        same.update(range(touching[place - 1] + 1, touching[place]))
    return [index for index in range(count) if index not in same] if same else range(count)


def run_of(steps: Sequence[BisectStep], index: int) -> BisectStep | None:
    """The run that shows a commit's curve best: a whole one rather than one that was cut, an early one otherwise.

    If it hasn't run, that is a run which is its run too.
    """
    own = runs_at(steps, index)
    return min(
        own, key=lambda step: (step.record.outcome is not Outcome.FINISHED, step.role is Role.CANARY), default=None
    )


def runs_at(steps: Sequence[BisectStep], index: int) -> list[BisectStep]:
    """The runs that show a commit: its own, or if it hasn't run those which are its run too."""
    usable = [step for step in steps if step.verdict is not CommitVerdict.SKIP and step.role not in _APART]
    own = [step for step in usable if step.index == index]
    return own or [step for step in usable if step.span is not None and step.span[0] <= index <= step.span[1]]


def unconfirmed_skips(steps: Sequence[BisectStep]) -> list[int]:
    """Commits that failed once with a reason that no commit has failed with twice: they are tried once more."""
    failed = [
        step
        for step in steps
        if step.role in _SEARCHED
        and step.verdict is CommitVerdict.SKIP
        and step.record.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
    ]
    tries: dict[tuple[int, str], int] = {}
    for step in failed:
        tries[step.index, step.reason] = tries.get((step.index, step.reason), 0) + 1
    certain = {reason for (_, reason), number in tries.items() if number > 1}
    runs = {index: sum(step.index == index and step.role in _SEARCHED for step in steps) for index, _ in tries}
    return [index for index, reason in tries if runs[index] == 1 and reason not in certain]


def wavering(steps: Sequence[BisectStep]) -> list[BisectStep]:
    """Failed runs of commits that ran another time: what failed isn't determined by the commit."""
    ran = {step.index for step in steps if step.record.outcome in _WITH_CURVES}
    return [
        step for step in steps if step.role in _SEARCHED and step.record.outcome is Outcome.FAILED and step.index in ran
    ]


def failed_in_a_row(steps: Sequence[BisectStep]) -> list[BisectStep]:
    """The latest search runs that didn't finish, back to the last run that did."""
    failed: list[BisectStep] = []
    for step in reversed(steps):
        if step.record.outcome in _WITH_CURVES or step.verdict is not CommitVerdict.SKIP:
            break
        if step.role in _SEARCHED:
            failed.append(step)
    return failed


def reverts_of(commits: Sequence[CommitInfo], index: int) -> list[int]:
    """Later commits whose subject says that they take back the one at ``index``."""
    culprit = commits[index]
    subject = (
        culprit.subject.removesuffix(f"({culprit.pull_request})").strip() if culprit.pull_request else culprit.subject
    )
    found = []
    for later in range(index + 1, len(commits)):
        text = commits[later].subject
        if "revert" in text.lower() and (subject in text or (culprit.pull_request or "\0") in text.split("(")[0]):
            found.append(later)
    return found
