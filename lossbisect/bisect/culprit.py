"""The answer of a bisection, and what it rests on."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lossbisect.bisect.known import folded
from lossbisect.bisect.types import BisectPlan, BisectStep, CommitInfo, CommitRange, CommitVerdict, FileChange
from lossbisect.compare.types import Judgement, NoiseFloor

__all__ = ["Answer", "BisectResult", "Change", "Culprit", "Finding", "harmless_files", "result_of"]


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
        judgement: The curves on both sides, compared, with other metrics as witnesses.
    """

    good: int
    bad: int
    judgement: Judgement


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What the runs say, before git is asked who it was.

    Attributes:
        answer: How it ended.
        reason: One sentence.
        good: Index of the last good commit before the change; -1 is the good end.
        bad: Index of the first commit known bad.
        steps: All finished runs, in order.
        noise: How far two curves may lie apart and still be the same.
        judgement: The curves at ``good`` and ``bad``, compared, with other metrics as witnesses.
        warnings: What a reader should know before believing it, one sentence each.
        changes: Every change of the range, oldest first, where that was asked.
        probability: Of the answer, where runs are noisy; None where every verdict is sure.
    """

    answer: Answer
    reason: str
    good: int
    bad: int
    steps: tuple[BisectStep, ...]
    noise: NoiseFloor
    judgement: Judgement
    warnings: tuple[str, ...] = ()
    probability: float | None = None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Culprit:
    """The first bad commit.

    Attributes:
        commit: The commit.
        parent: The commit before it in the range: the last good one.
        files: What it changed against its first parent.
        merged: For a merge, the commits that it brought in, newest first.
        is_harmless: It changed only documentation, tests or CI, which no training run reads. Doubt it.
    """

    commit: CommitInfo
    parent: CommitInfo
    files: tuple[FileChange, ...]
    merged: tuple[CommitInfo, ...]
    is_harmless: bool


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
        repository: ``owner/name`` of Megatron-LM's remote on GitHub, or None.
    """

    id: str
    directory: Path
    plan: BisectPlan
    commits: CommitRange
    finding: Finding
    culprit: Culprit | None
    candidates: tuple[CommitInfo, ...]
    repository: str | None

    @property
    def answer(self) -> Answer:
        """How it ended."""
        return self.finding.answer

    @property
    def confidence(self) -> str:
        """What the answer rests on, in one or two sentences."""
        steps = self.finding.steps
        tested = sum(step.verdict is not CommitVerdict.SKIP for step in steps)
        skipped = len(steps) - tested
        floor = self.finding.noise
        if floor.surely_real_rel == 0:
            noise = "The good end repeats itself bit for bit, so any difference counts."
        elif self.finding.probability is not None:
            return (
                f"{tested} runs judged, {skipped} skipped. Runs don't repeat themselves bit for bit: the answer has a "
                f"probability of {self.finding.probability:.3f}, from all runs together."
            )
        else:
            noise = f"Differences up to {floor.surely_noise_rel:.1e} count as the same."
        confirmed = " The commit and its parent gave the same curves again." if self.answer is Answer.FOUND else ""
        n_folded = len(folded(steps))
        same = (
            f" {n_folded} of {len(self.commits.commits)} commits change nothing that a neighbour's run read: "
            "theirs is that run."
        )
        return f"{tested} runs judged, {skipped} skipped. {noise}{confirmed}{same if n_folded else ''}"


_HARMLESS = re.compile(
    r"^(docs?|tests?|\.github|\.gitlab|skills)/"
    r"|(^|/)(CODEOWNERS|LICENSE|\.gitignore|\.gitlab-ci\.yml|\.pre-commit-config\.yaml|\.coderabbit\.yaml|codecov\.yml)$"
    r"|\.(md|rst)$"
)


def harmless_files(files: Iterable[FileChange]) -> bool:
    """Whether all of them are documentation, tests or CI; a commit without files changes nothing either."""
    return all(_HARMLESS.search(file.path) for file in files)


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
    return BisectResult(
        id=bisect_id,
        directory=directory,
        plan=plan,
        commits=commits,
        finding=finding,
        culprit=culprit,
        candidates=commits.commits[finding.good + 1 : finding.bad + 1] if has_change else (),
        repository=repository,
    )
