"""The answer of a bisection, and what it rests on."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lossbisect.bisect.known import folded, places_left
from lossbisect.bisect.passage import Passage
from lossbisect.bisect.terms import Terms, terms_of
from lossbisect.bisect.types import BisectPlan, BisectStep, CommitInfo, CommitRange, CommitVerdict, FileChange
from lossbisect.compare.types import Judgement, NoiseFloor

__all__ = ["Answer", "BisectResult", "Change", "Culprit", "Finding", "Revert", "result_of"]


class Answer(StrEnum):
    """How a bisection ended."""

    FOUND = "first bad commit"
    """One commit, and it and its parent gave the same curves again."""
    UNCONFIRMED = "unconfirmed"
    """One commit, but it or its parent didn't give the same curve again."""
    SEVERAL = "several candidates"
    """The commits in between can't be tested."""
    NO_CULPRIT = "no culprit"
    """The ends have the same curve."""
    EVERY_CHANGE = "every change"
    """All commits that changed the curve were asked for: those of `Finding.changes`."""
    UNDECIDED = "undecided"
    """The ends differ, but by no more than noise may explain."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One change of the curve.

    Attributes:
        good: Index of the commit before it; -1 is the good end.
        bad: Index of the commit that changed the curve; if more commits lie between the two, they can't be tested.
        judgement: The curves on both sides, compared, with other metrics as witnesses; None where none are judged.
        shown: What the runs before and with it show, a clause each, where no curves are judged.
        merged: For a merge, the commits that it brought in, newest first.
    """

    good: int
    bad: int
    judgement: Judgement | None
    shown: tuple[str, str] | None = None
    merged: tuple[CommitInfo, ...] = ()

    def told_by(self, commits: CommitRange) -> CommitInfo:
        """The commit whose subject and author say most: of a merge with one commit in it, that one."""
        return self.merged[0] if len(self.merged) == 1 else commits.at(self.bad)


@dataclass(frozen=True, kw_only=True, slots=True)
class Revert:
    """The bad end with the culprit's change taken back.

    Attributes:
        comes_back: It has the curve from before the change; None if it could not be run.
        reason: What the curve shows, or why it could not be run; a clause.
    """

    comes_back: bool | None
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What the runs say, before git is asked who it was.

    Attributes:
        answer: How it ended.
        reason: One sentence.
        good: Index of the last good commit before the change; -1 is the good end.
        bad: Index of the first commit known bad.
        steps: All finished runs, in order.
        noise: How far two curves may lie apart and still be the same; None where no curves are judged.
        judgement: The curves at ``good`` and ``bad``, compared, with other metrics as witnesses; None likewise.
        warnings: What a reader should know before believing it, one sentence each.
        changes: Every change of the range, oldest first, where that was asked.
        probability: Of the answer, where runs are noisy; None where every verdict is sure.
        revert: What the bad end does without the culprit; None where that wasn't asked.
        rests_on: By what a run is bad, one sentence, where no curves are judged.
    """

    answer: Answer
    reason: str
    good: int
    bad: int
    steps: tuple[BisectStep, ...]
    noise: NoiseFloor | None
    judgement: Judgement | None
    warnings: tuple[str, ...] = ()
    probability: float | None = None
    changes: tuple[Change, ...] = ()
    revert: Revert | None = None
    rests_on: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Culprit:
    """The first bad commit.

    Attributes:
        commit: The commit.
        parent: The commit before it in the range: the last good one.
        files: What it changed against its first parent.
        merged: For a merge, the commits that it brought in, newest first.
        harmless: What it changed, if that is only documentation, tests, CI or printing: doubt it. None otherwise.
    """

    commit: CommitInfo
    parent: CommitInfo
    files: tuple[FileChange, ...]
    merged: tuple[CommitInfo, ...]
    harmless: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectResult:
    """The answer of a bisection with its evidence.

    Attributes:
        id: The bisect's name; ``lossbisect bisect --resume ID`` shows this result again.
        directory: Its folder: journal and runs.
        plan: What was asked.
        commits: The range that was searched.
        finding: What the runs say.
        culprit: The first bad commit, if one commit is left.
        candidates: Commits that may hold the change, oldest first; empty if there is no change.
        repository: ``owner/name`` of the searched repository's remote on GitHub, or None.
        passages: How earlier and later stages came to it, in order; empty for a bisection of one stage.
        other_steps: Finished runs of those stages; their indices are those of other ranges.
    """

    id: str
    directory: Path
    plan: BisectPlan
    commits: CommitRange
    finding: Finding
    culprit: Culprit | None
    candidates: tuple[CommitInfo, ...]
    repository: str | None
    passages: tuple[Passage, ...] = ()
    other_steps: tuple[BisectStep, ...] = ()

    @property
    def answer(self) -> Answer:
        """How it ended."""
        return self.finding.answer

    @property
    def terms(self) -> Terms:
        """What both sides are called."""
        return terms_of(self.plan.search)

    @property
    def answer_name(self) -> str:
        """How it ended, in the words of what was looked for."""
        return self.terms.first if self.answer is Answer.FOUND else self.answer.value

    @property
    def reverted(self) -> str | None:
        """What the bad end does without the culprit, a clause; None where that wasn't asked."""
        revert = self.finding.revert
        if revert is None:
            return None
        if revert.comes_back is None:
            return f"can't be told: {revert.reason}"
        answer = "yes" if revert.comes_back else "no"
        return f"on top of {self.commits.bad.short} {self.terms.back}: {answer} ({revert.reason})"

    @property
    def confidence(self) -> str:
        """What the answer rests on, in one or two sentences."""
        steps = (*self.finding.steps, *self.other_steps)
        tested = sum(step.verdict is not CommitVerdict.SKIP for step in steps)
        skipped = len(steps) - tested
        last = len(self.finding.steps)
        where = f", {last} of all {len(steps)} in the stage that gave the answer" if self.other_steps else ""
        floor = self.finding.noise
        n_folded = len(folded(self.finding.steps))
        same = (
            f" {n_folded} of {len(self.commits.commits)} commits change nothing that a neighbour's run read: "
            "theirs is that run."
        )
        same = same if n_folded else ""
        if self.finding.probability is not None:
            why = self.finding.rests_on or "Runs don't repeat themselves bit for bit."
            return (
                f"{tested} runs judged, {skipped} skipped{where}. {why} The answer has a probability of "
                f"{self.finding.probability:.3f}, from all {'its ' if self.other_steps else ''}runs together.{same}"
            )
        if floor is None:
            noise = self.finding.rests_on or ""
        elif floor.surely_real_rel == 0:
            noise = f"The {self.terms.old_end} repeats itself bit for bit, so any difference counts."
        else:
            noise = f"Differences up to {floor.surely_noise_rel:.1e} count as the same."
        same_again = "the same curves" if floor is not None else "the same"
        confirmed = f" The commit and its parent gave {same_again} again." if self.answer is Answer.FOUND else ""
        return f"{tested} runs judged, {skipped} skipped{where}. {noise}{confirmed}{same}"


def result_of(
    finding: Finding,
    *,
    bisect_id: str,
    directory: Path,
    plan: BisectPlan,
    commits: CommitRange,
    culprit: Culprit | None,
    repository: str | None,
) -> BisectResult:
    """Put the finding and what git knows about the commit together."""
    has_change = finding.answer in (Answer.FOUND, Answer.UNCONFIRMED, Answer.SEVERAL)
    between = range(finding.good + 1, finding.bad + 1)
    places = places_left(finding.steps, len(commits.commits)) if finding.answer is Answer.SEVERAL else between
    return BisectResult(
        id=bisect_id,
        directory=directory,
        plan=plan,
        commits=commits,
        finding=finding,
        culprit=culprit,
        candidates=tuple(commits.commits[i] for i in places if i in between) if has_change else (),
        repository=repository,
    )
