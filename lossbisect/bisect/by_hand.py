"""What the user says about commits of the range: not to be run, or to be run with a patch."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.names import resolve, searched_repo
from lossbisect.bisect.options import Fixup, SearchOptions
from lossbisect.bisect.repository import ask, is_ancestor
from lossbisect.bisect.scope import Scope, Searched
from lossbisect.bisect.types import BisectPlan, CommitRange
from lossbisect.bisect.workshop import Change, Patch
from lossbisect.compare.wording import counted
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["older_first", "patches_for", "set_aside", "settled"]

_MOST_NAMED = 3


def older_first(code: CodeBase, good: str | None, bad: str | None, scope: Scope) -> tuple[str, str]:
    """The ends of a hunt for a fix, the older, broken one first.

    Raises:
        GitError: One isn't named, or the broken one isn't the older one.
    """
    if good is None or bad is None:
        raise GitError("--find-fix needs both ends, the older, broken one as --bad and the newer one as --good.")
    repo = searched_repo(code, scope.searched)
    older, newer = (resolve(code, name, scope.searched) for name in (bad, good))
    if older != newer and not is_ancestor(repo, older, newer):
        raise GitError(
            f"--find-fix: the bad end ({bad}) must come before the good one ({good}). To find what broke it, leave "
            "--find-fix out."
        )
    return bad, good


def settled(code: CodeBase, options: SearchOptions, searched: Searched = Searched.MCORE) -> SearchOptions:
    """The options with every name in them as a SHA and every patch read, so that a bisect can go on without the file.

    Raises:
        GitError: A name is no commit's, or a file can't be read.
    """
    if options.fixups and searched is Searched.BRIDGE:
        raise GitError("--fixup changes Megatron-LM, and Bridge is searched. Leave --fixup or --search bridge out.")
    return replace(
        options,
        skip=tuple(_span(code, name, searched) for name in options.skip),
        fixups=tuple(_read(code, fixup) for fixup in options.fixups),
    )


def set_aside(code: CodeBase, commits: CommitRange, plan: BisectPlan) -> CommitRange:
    """The range with the commits that the user said not to run marked; notes say which, and which get a patch.

    Raises:
        GitError: An end is among them.
    """
    options = plan.search
    if not (options.skip or options.fixups):
        return commits
    repo = searched_repo(code, plan.scope.searched)
    line = (commits.good, *commits.commits)
    skipped: set[int] = set()
    notes = []
    for span in options.skip:
        named = _named(repo, span)
        found = {index for index, commit in enumerate(line, start=-1) if commit.sha in named}
        for index, end in ((-1, "older"), (len(commits.commits) - 1, "newer")):
            if index in found:
                raise GitError(
                    f"--skip {_shown(span)}: it holds the {end} end {commits.at(index).short}, which has to be run. "
                    "Choose another end, or skip less."
                )
        skipped |= found
        if not found:
            notes.append(f"--skip {_shown(span)} names no commit of the range.")
    if skipped:
        notes.append(f"Not run, as you said: {_listed(commits, sorted(skipped))}.")
    getting = [_getting(code.mcore, commits, fixup) for fixup in options.fixups]
    for fixup, shas in zip(options.fixups, getting, strict=True):
        indices = [index for index, commit in enumerate(line, start=-1) if commit.sha in shas]
        notes.append(f"Run with {fixup.name}: {_listed(commits, indices) if indices else 'no commit'}.")
    patched = [tuple(commit.sha in shas for shas in getting) for commit in line]
    changes = commits.changes
    if changes is not None:
        # A neighbour's run says nothing of a commit that isn't to be run, nor of one that gets another patch.
        apart = skipped | {index + 1 for index in skipped}
        apart |= {index for index, pair in enumerate(pairwise(patched)) if pair[0] != pair[1]}
        changes = tuple(None if index in apart else each for index, each in enumerate(changes))
    return replace(commits, skipped=frozenset(skipped), changes=changes, notes=(*commits.notes, *notes))


def patches_for(repo: "Repo", commit: str, fixups: Sequence[Fixup]) -> tuple[Patch | Change, ...]:
    """The patches that a commit is run with.

    Args:
        repo: Megatron-LM's repository.
        commit: Full SHA.
        fixups: Settled.
    """
    return tuple(_patch(fixup) for fixup in fixups if _is_for(repo, commit, fixup))


def _getting(repo: "Repo", commits: CommitRange, fixup: Fixup) -> set[str]:
    """The commits of a range that a change is for, as `patches_for` says it of each, in one reading of git."""
    line = {commits.good.sha, *(commit.sha for commit in commits.commits)}
    asked = line if fixup.when is None else line & _named(repo, fixup.when)
    if fixup.change is None:
        return asked
    mending = fixup.change[1]
    return asked - {mending, *ask(repo, "rev-list", "--ancestry-path", f"{mending}..{commits.bad.sha}").split()}


def _is_for(repo: "Repo", commit: str, fixup: Fixup) -> bool:
    if fixup.change is not None and is_ancestor(repo, fixup.change[1], commit):
        return False  # it holds the change already
    if fixup.when is None:
        return True
    first, _, last = fixup.when.partition("..")
    return is_ancestor(repo, commit, last) and not is_ancestor(repo, commit, first)


def _patch(fixup: Fixup) -> Patch | Change:
    if fixup.change is not None:
        before, after = fixup.change
        return Change(name=fixup.name, before=before, after=after)
    assert fixup.patch is not None, "options are settled first"
    return Patch(name=fixup.name, text=fixup.patch)


def _read(code: CodeBase, fixup: Fixup) -> Fixup:
    if fixup.patch is not None or fixup.change is not None:
        return fixup
    when = None if fixup.when is None else _span(code, fixup.when, Searched.MCORE)
    path = Path(fixup.name).expanduser()
    if path.is_file():
        try:
            text = path.read_bytes().decode("utf-8", "surrogateescape")
        except OSError as error:
            raise GitError(f"--fixup {fixup.name}: can't be read: {error.strerror}.") from error
        if "\n+++ " not in f"\n{text}" and "\ndiff --git " not in f"\n{text}":
            raise GitError(f"--fixup {fixup.name}: this is no patch. Make one with: git diff > FILE")
        return replace(fixup, patch=text, when=when)
    try:
        sha = resolve(code, fixup.name)
    except GitError as error:
        raise GitError(f"--fixup {fixup.name}: neither a file nor a commit. {error}") from error
    parents = ask(code.mcore, "rev-list", "--parents", "--max-count=1", sha).split()[1:]
    if not parents:
        raise GitError(f"--fixup {fixup.name}: the first commit of a history changes nothing that could be applied.")
    return replace(fixup, change=(parents[0], sha), when=when)


def _span(code: CodeBase, name: str, searched: Searched) -> str:
    """``A..B``, or one commit, with SHAs for names."""
    first, dots, last = name.partition("..")
    if not dots:
        return resolve(code, name, searched)
    return f"{resolve(code, first, searched)}..{resolve(code, last.lstrip('.'), searched)}"


def _named(repo: "Repo", span: str) -> set[str]:
    """The commits that ``A..B`` or a SHA names, as git understands it: those after A, up to and with B.

    None of a repository that doesn't know them: the range of a later stage may be another's.
    """
    if ".." not in span:
        return {span}
    try:
        return set(ask(repo, "rev-list", span).split())
    except GitError:
        return set()


def _shown(span: str) -> str:
    return "..".join(sha[:10] for sha in span.split(".."))


def _listed(commits: CommitRange, indices: Sequence[int]) -> str:
    count = len(commits.commits) + 1
    if len(indices) == count:
        return "every commit"
    names = [commits.at(index).short for index in indices]
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    is_one_stretch = indices[-1] - indices[0] == len(indices) - 1
    return f"{counted(len(names), 'commit')}, {'' if is_one_stretch else 'among '}{names[0]} to {names[-1]}"
