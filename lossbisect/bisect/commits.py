"""Commits, and which of them lie between two ends."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.names import resolve, searched_repo
from lossbisect.bisect.repository import ask, is_ancestor, is_shallow, unshallow, where
from lossbisect.bisect.scope import Scope
from lossbisect.bisect.types import CommitInfo, CommitRange, FileChange
from lossbisect.compare.wording import counted
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = [
    "changed_files",
    "changes_between",
    "commit_info",
    "commit_range",
    "github_name",
    "merge_base",
    "merged_commits",
    "oldest_of",
    "points_range",
]

_FIELDS = ("%H", "%P", "%an", "%ae", "%aI", "%s", "%b")
_STATUS = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "copied", "T": "type changed"}
_PULL_REQUEST = re.compile(r"\(#(\d+)\)\s*$")
_MERGE_REQUEST = re.compile(r"(?:^|[\s\w/.-])!(\d+)\b")
_SEE_MERGE_REQUEST = re.compile(r"^See merge request \S*!(\d+)\s*$", re.MULTILINE)
_GITHUB = re.compile(r"github\.com[:/]+([\w.-]+/[\w.-]+?)(?:\.git)?/?$")


def commit_range(code: CodeBase, good: str, bad: str, scope: Scope | None = None) -> CommitRange:
    """The candidates after ``good`` up to and with ``bad``, along the first parents of ``bad``.

    Order is the order of parents; dates play no part. Where ``good`` is on no first-parent line of ``bad`` (it came in
    through a merge), the commits before that merge don't hold it and are left out.

    Args:
        code: The checkout.
        good: A commit by any name that `bisect.names` knows.
        bad: The same.
        scope: Which commits are candidates; None: all of Megatron-LM's. The bad end always is one.

    Raises:
        GitError: An end is unknown, ``good`` is not before ``bad``, or no commit touches the scope's paths.
    """
    scope = scope or Scope()
    repo = searched_repo(code, scope.searched)
    good_sha, bad_sha = resolve(code, good, scope.searched), resolve(code, bad, scope.searched)
    if good_sha == bad_sha:
        raise GitError(f"Good ({good}) and bad ({bad}) are the same commit, {good_sha[:10]}. Give two different ones.")
    if not is_ancestor(repo, good_sha, bad_sha):
        raise _unrelated(repo, (good, good_sha), (bad, bad_sha), is_shallow=is_shallow(repo))
    line = _log(repo, "--first-parent", "--reverse", f"{good_sha}..{bad_sha}")
    notes: tuple[str, ...] = ()
    if line[0].parents[:1] != (good_sha,):
        if is_shallow(repo):
            raise GitError(f"{where(repo)}: this clone is shallow, commits of the range are missing. {unshallow(repo)}")
        after_good = set(ask(repo, "rev-list", "--ancestry-path", f"{good_sha}..{bad_sha}").split())
        line = tuple(commit for commit in line if commit.sha in after_good)
        notes = (_off_the_line(good_sha, line),)
    commits = CommitRange(good=commit_info(repo, good_sha), commits=line, notes=notes)
    return _touching(repo, commits, scope.paths) if scope.paths else commits


def points_range(repo: "Repo", good: str, points: Sequence[str], bad: str) -> CommitRange:
    """Two ends with chosen commits in between, whatever lies between those; all are full SHAs, oldest first."""
    line = tuple(commit_info(repo, sha) for sha in (*points, bad))
    return CommitRange(good=commit_info(repo, good), commits=line)


def merge_base(repo: "Repo", one: str, other: str) -> str | None:
    """Full SHA of the newest commit that two have in common; None if they have none."""
    return next(iter(ask(repo, "merge-base", one, other, allowed=(0, 1)).split()), None)


def oldest_of(repo: "Repo", sha: str) -> str:
    """The first commit on a commit's first-parent line, or the oldest one that a shallow clone has; full SHA."""
    return ask(repo, "rev-list", "--first-parent", sha).split()[-1]


def _touching(repo: "Repo", commits: CommitRange, paths: Sequence[str]) -> CommitRange:
    """The commits of a range that touch paths, and its bad end."""
    ends = f"{commits.good.sha}..{commits.bad.sha}"
    named = [f":(top){path}" if not path.startswith(":") else path for path in paths]
    touching = set(ask(repo, "rev-list", "--first-parent", ends, "--", *named).split())
    kept = tuple(commit for commit in commits.commits if commit.sha in touching)
    shown = " ".join(paths)
    if not kept:
        raise GitError(
            f"{where(repo)}: none of the {counted(len(commits.commits), 'commit')} of the range touches {shown}. "
            "--paths takes paths from the repository's root, or git's pathspecs."
        )
    note = (
        f"Only {len(kept)} of {counted(len(commits.commits), 'commit')} touch {shown} and were candidates. That the "
        "others change nothing is an assumption."
    )
    ended = kept if kept[-1] == commits.bad else (*kept, commits.bad)
    return replace(commits, commits=ended, notes=(*commits.notes, note))


def commit_info(repo: "Repo", sha: str) -> CommitInfo:
    """One commit's author, date, subject and pull request."""
    return _log(repo, "--max-count=1", sha)[0]


def changed_files(repo: "Repo", commit: CommitInfo) -> tuple[FileChange, ...]:
    """The files that a commit changed against its first parent."""
    ends = (commit.parents[0], commit.sha) if commit.parents else ("--root", commit.sha)
    words = ask(repo, "diff-tree", "--no-commit-id", "-r", "-M", "-z", "--name-status", *ends).rstrip("\0").split("\0")
    changes: list[FileChange] = []
    rest = iter(word for word in words if word)
    for status in rest:
        path = next(rest)
        if status[0] in "RC":  # two paths: from, to
            path = next(rest)
        changes.append(FileChange(path=path, status=_STATUS.get(status[0], status)))
    return tuple(changes)


def merged_commits(repo: "Repo", commit: CommitInfo) -> tuple[CommitInfo, ...]:
    """The commits that a merge brought in, newest first, merges left out; nothing for a plain commit."""
    return _log(repo, "--no-merges", f"{commit.parents[0]}..{commit.sha}") if commit.is_merge else ()


def github_name(repo: "Repo") -> str | None:
    """``owner/name`` if the remote ``origin`` (or the only remote) is on GitHub."""
    remotes = ask(repo, "remote").split()
    name = "origin" if "origin" in remotes or not remotes else remotes[0]
    found = _GITHUB.search(ask(repo, "config", "--get", f"remote.{name}.url", allowed=(0, 1)))
    return found[1] if found else None


def _log(repo: "Repo", *arguments: str) -> tuple[CommitInfo, ...]:
    layout = "%x00".join(_FIELDS)
    words = ask(
        repo, "log", "-z", "--no-color", "--no-mailmap", "--encoding=UTF-8", f"--format=tformat:{layout}", *arguments
    )
    parts = words.split("\0")
    rows = (parts[i : i + len(_FIELDS)] for i in range(0, len(parts) - len(_FIELDS) + 1, len(_FIELDS)))
    return tuple(_commit(*row) for row in rows)


def _commit(sha: str, parents: str, author: str, email: str, date: str, subject: str, body: str) -> CommitInfo:
    return CommitInfo(
        sha=sha,
        parents=tuple(parents.split()),
        author=author,
        email=email,
        date=date,
        subject=subject,
        pull_request=_pull_request(subject, body),
    )


def _pull_request(subject: str, body: str) -> str | None:
    if found := _PULL_REQUEST.search(subject):
        return f"#{found[1]}"
    if found := _MERGE_REQUEST.search(subject) or _SEE_MERGE_REQUEST.search(body):
        return f"!{found[1]}"
    return None


def _unrelated(repo: "Repo", good: tuple[str, str], bad: tuple[str, str], *, is_shallow: bool) -> GitError:
    place = where(repo)
    if is_ancestor(repo, bad[1], good[1]):
        return GitError(
            f"{place}: bad ({bad[0]}) comes before good ({good[0]}). Swap them: --good {bad[0]} --bad {good[0]}"
        )
    if is_shallow:
        return GitError(
            f"{place}: this clone is shallow, so it can't be seen that good comes before bad. {unshallow(repo)}"
        )
    bases = ask(repo, "merge-base", good[1], bad[1], allowed=(0, 1)).split()
    if not bases:
        return GitError(f"{place}: good ({good[0]}) and bad ({bad[0]}) have no common history.")
    return GitError(
        f"{place}: good ({good[0]}) is not an ancestor of bad ({bad[0]}). Their merge base is {bases[0][:10]}: "
        f"if that is good too, take --good {bases[0][:10]}"
    )


def _off_the_line(good: str, line: tuple[CommitInfo, ...]) -> str:
    return (
        f"{good[:10]} is not on the first-parent line of {line[-1].short}: it came in with the merge {line[0].short}, "
        "which also brings in what the other side of the merge holds."
    )


def changes_between(repo: "Repo", commits: CommitRange) -> tuple[tuple[FileChange, ...] | None, ...]:
    """What each commit of a range changed against the one before it; None where that isn't its first parent.

    A renamed file is one that went and one that came. The whole range is one reading of git.
    """
    words = ask(
        repo, "log", "-z", "--first-parent", "--diff-merges=first-parent", "--name-status", "--no-renames",
        "--format=tformat:%x01%H", f"{commits.good.sha}..{commits.bad.sha}",
    )  # fmt: skip
    changes: dict[str, list[FileChange]] = {}
    for part in words.split("\x01")[1:]:
        sha, *rest = (word.lstrip("\n") for word in part.split("\0") if word.strip("\n"))
        pairs = zip(rest[::2], rest[1::2], strict=True)
        changes[sha] = [FileChange(path=path, status=_STATUS.get(status[0], status)) for status, path in pairs]
    before = (commits.good, *commits.commits)
    return tuple(
        tuple(changes[commit.sha]) if commit.parents[:1] == (parent.sha,) and commit.sha in changes else None
        for parent, commit in zip(before, commits.commits, strict=False)
    )
