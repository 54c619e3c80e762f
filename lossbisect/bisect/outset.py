"""From what a user names to the first stage of a bisection, and from any stage to its commits."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lossbisect.bisect.by_hand import older_first, set_aside
from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.commits import changes_between, commit_range, merge_base, oldest_of, points_range
from lossbisect.bisect.names import Ends, named_ends, resolve, searched_repo
from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.pairs import pair_range
from lossbisect.bisect.repository import is_ancestor, is_shallow, unshallow, where
from lossbisect.bisect.scope import Scope, Searched, Stage, StageKind
from lossbisect.bisect.types import BisectPlan, CommitRange
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["Outset", "outset_of", "stage_between", "stage_range"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outset:
    """Where a bisection begins.

    Attributes:
        good: Full SHA of the good end, or of the oldest commit at which one is looked for.
        bad: Full SHA of the bad end.
        stage: What is done first.
        notes: What was taken for an end that wasn't named, one sentence.
    """

    good: str
    bad: str
    stage: Stage
    notes: tuple[str, ...] = ()


def outset_of(code: CodeBase, good: str | None, bad: str | None, scope: Scope, search: SearchOptions) -> Outset:
    """The first stage between two ends, as a user names them.

    Without a good end that is the way back from the bad one; with ends of which neither comes before the other it is
    their merge base; else it is the range itself.

    Raises:
        GitError: A name isn't known, the ends are in the wrong order, or nothing connects them.
    """
    if search.find_fix:
        good, bad = older_first(code, good, bad, scope)
    ends = named_ends(code, good, bad, scope)
    return replace(_between(code, ends, scope), notes=ends.notes)


def _between(code: CodeBase, ends: Ends, scope: Scope) -> Outset:
    repo = searched_repo(code, scope.searched)
    bad = resolve(code, ends.bad, scope.searched)
    if ends.good is None:
        oldest = resolve(code, scope.oldest, scope.searched) if scope.oldest is not None else oldest_of(repo, bad)
        if oldest == bad or not is_ancestor(repo, oldest, bad):
            raise GitError(
                f"{where(repo)}: {scope.oldest or oldest[:10]} doesn't come before the bad end {ends.bad}, so there is "
                "no way back to it. Name another --oldest, or a good end: --good COMMIT"
            )
        return Outset(good=oldest, bad=bad, stage=Stage(kind=StageKind.WALK))
    good = resolve(code, ends.good, scope.searched)
    if good == bad:
        named = "" if ends.good == ends.bad else f" and {ends.bad}"
        raise GitError(
            f"{where(repo)}: both ends ({ends.good}{named}) are the same commit, {good[:10]}. Name two different ones."
        )
    if is_ancestor(repo, bad, good):
        raise GitError(
            f"{where(repo)}: bad ({ends.bad}) comes before good ({ends.good}). "
            f"Swap them: --good {ends.bad} --bad {ends.good}"
        )
    return Outset(good=good, bad=bad, stage=stage_between(repo, good, bad))


def stage_between(repo: "Repo", good: str, bad: str) -> Stage:
    """The range itself if the good end comes before the bad one, else their merge base; both are full SHAs.

    Raises:
        GitError: They have no history in common, or this clone lacks it.
    """
    if is_ancestor(repo, good, bad):
        return Stage()
    base = merge_base(repo, good, bad)
    if base is None:
        lacking = f" in this shallow clone. {unshallow(repo)}" if is_shallow(repo) else "."
        raise GitError(f"{where(repo)}: good ({good[:10]}) and bad ({bad[:10]}) have no common history{lacking}")
    return Stage(kind=StageKind.SIDES, points=(base,))


def stage_range(code: CodeBase, plan: BisectPlan) -> CommitRange:
    """The commits of a stage, with what is known of them before anything is run.

    Raises:
        GitError: They aren't in this clone, or an end of them is not to be run.
    """
    repo = searched_repo(code, plan.scope.searched)
    if plan.stage.kind is StageKind.PAIR:
        return pair_range(code, plan.good, plan.stage.points[0], plan.bad)
    if plan.stage.points:
        return set_aside(code, points_range(repo, plan.good, plan.stage.points, plan.bad), plan)
    commits = commit_range(code, plan.good, plan.bad, plan.scope)
    if plan.search.fold and plan.scope.searched is Searched.MCORE:
        # What a run read is known of Megatron-LM's files only.
        commits = replace(commits, changes=changes_between(repo, commits))
    return set_aside(code, commits, plan)
