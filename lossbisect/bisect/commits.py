"""All reading of git: what a checkout is, and which commits lie between two of them.

Nothing here writes: not a ref, not the index (``git status`` would, without ``GIT_OPTIONAL_LOCKS=0``), and no hook,
file-system monitor or fetch is set off.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.bisect.types import CommitInfo, CommitRange, FileChange
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = [
    "SUBMODULE",
    "CodeBase",
    "ask",
    "changed_files",
    "commit_info",
    "commit_range",
    "github_name",
    "merged_commits",
    "open_codebase",
    "open_repository",
    "resolve",
]

SUBMODULE = "3rdparty/Megatron-LM"
"""Where Bridge keeps Megatron-LM."""

_FIELDS = ("%H", "%P", "%an", "%ae", "%aI", "%s", "%b")
_STATUS = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "copied", "T": "type changed"}
_PULL_REQUEST = re.compile(r"\(#(\d+)\)\s*$")
_MERGE_REQUEST = re.compile(r"(?:^|[\s\w/.-])!(\d+)\b")
_SEE_MERGE_REQUEST = re.compile(r"^See merge request \S*!(\d+)\s*$", re.MULTILINE)
_GITHUB = re.compile(r"github\.com[:/]+([\w.-]+/[\w.-]+?)(?:\.git)?/?$")
_QUIET = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "log.showSignature=false", "core.quotePath=false")


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeBase:
    """The user's checkout: where commits and code are read from, never written to.

    Attributes:
        root: Root of the checkout.
        mcore: The repository of Megatron-LM, the submodule's one in a Bridge checkout.
        mcore_head: Full SHA that it is checked out at.
        bridge: The repository of Bridge, or None in a Megatron-LM checkout.
        bridge_commit: Full SHA of its HEAD, the commit that Bridge stays at, or None.
    """

    root: Path
    mcore: "Repo"
    mcore_head: str
    bridge: "Repo | None" = None
    bridge_commit: str | None = None


@contextmanager
def open_codebase(path: Path, *, allow_dirty: bool = False) -> Iterator[CodeBase]:
    """The checkout that holds ``path``: Bridge with its submodule, or Megatron-LM.

    Args:
        path: Any folder of the checkout.
        allow_dirty: Go on although tracked files are changed. Runs use committed code only: those changes play no part.

    Raises:
        GitError: There is no such checkout, its submodule isn't there, or it has changed tracked files.
    """
    repo = open_repository(path)
    opened = [repo]
    try:
        root = Path(repo.working_tree_dir or repo.common_dir)
        head = _head(repo, root)
        if _kind_of(repo, SUBMODULE) == "commit" and _kind_of(repo, "src/megatron/bridge") == "tree":
            mcore = _open_submodule(root)
            opened.append(mcore)
            code = CodeBase(
                root=root, mcore=mcore, mcore_head=_head(mcore, root / SUBMODULE), bridge=repo, bridge_commit=head
            )
        elif _kind_of(repo, "megatron/core") == "tree":
            code = CodeBase(root=root, mcore=repo, mcore_head=head)
        else:
            raise GitError(
                f"{root}: neither a Megatron Bridge checkout (src/megatron/bridge and the submodule {SUBMODULE}) "
                "nor a Megatron-LM checkout (megatron/core). Give one of them as --repo."
            )
        if not allow_dirty:
            for each in opened:
                _refuse_changes(each)
        yield code
    finally:
        for each in opened:
            each.close()


def open_repository(path: Path) -> "Repo":
    """The git repository whose working tree holds ``path``.

    Raises:
        GitError: The path is missing or in no git repository, or git isn't installed.
    """
    if not path.exists():
        raise GitError(f"{path}: no such folder. Give the path of a Megatron Bridge or Megatron-LM checkout.")
    try:
        import git
    except ImportError as error:  # gitpython looks for the executable on import
        raise GitError("git was not found. Install it, or put it on PATH.") from error
    try:
        return git.Repo(path.resolve(), search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise GitError(
            f"{path}: not a git checkout. Clone the repository, a copy of its files isn't enough."
        ) from error


def commit_range(code: CodeBase, good: str, bad: str) -> CommitRange:
    """The commits of Megatron-LM after ``good`` up to and with ``bad``, along the first parents of ``bad``.

    Order is the order of parents; dates play no part. Where ``good`` is on no first-parent line of ``bad`` (it came in
    through a merge), the commits before that merge don't hold it and are left out.

    Args:
        code: The checkout.
        good: SHA, tag or branch of Megatron-LM, or ``bridge:REV`` for the commit that Bridge pins at its own REV.
        bad: The same.

    Raises:
        GitError: An end is unknown, or ``good`` is not before ``bad``.
    """
    repo = code.mcore
    good_sha, bad_sha = resolve(code, good), resolve(code, bad)
    is_shallow = ask(repo, "rev-parse", "--is-shallow-repository") == "true"
    if good_sha == bad_sha:
        raise GitError(f"Good ({good}) and bad ({bad}) are the same commit, {good_sha[:10]}. Give two different ones.")
    if not _is_ancestor(repo, good_sha, bad_sha):
        raise _unrelated(repo, (good, good_sha), (bad, bad_sha), is_shallow=is_shallow)
    line = _log(repo, "--first-parent", "--reverse", f"{good_sha}..{bad_sha}")
    notes: tuple[str, ...] = ()
    if line[0].parents[:1] != (good_sha,):
        if is_shallow:
            raise GitError(
                f"{_where(repo)}: this clone is shallow, commits of the range are missing. {_unshallow(repo)}"
            )
        after_good = set(ask(repo, "rev-list", "--ancestry-path", f"{good_sha}..{bad_sha}").split())
        line = tuple(commit for commit in line if commit.sha in after_good)
        notes = (_off_the_line(good_sha, line),)
    return CommitRange(good=commit_info(repo, good_sha), commits=line, notes=notes)


def resolve(code: CodeBase, name: str) -> str:
    """The full SHA of a commit of Megatron-LM; ``bridge:REV`` is the one that Bridge pins at REV.

    Raises:
        GitError: There is no such commit in this clone.
    """
    if not name.startswith("bridge:"):
        return _resolve(code.mcore, name)
    if code.bridge is None:
        raise GitError(f"{name}: only a Megatron Bridge checkout has such pins, and {code.root} is Megatron-LM.")
    revision = _resolve(code.bridge, name.removeprefix("bridge:"))
    pinned = ask(code.bridge, "ls-tree", revision, "--", SUBMODULE).split()
    if pinned[1:2] != ["commit"]:
        raise GitError(f"{name}: Bridge has no submodule {SUBMODULE} at {revision[:10]}. Name a commit of Megatron-LM.")
    return _resolve(code.mcore, pinned[2])


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


def ask(repo: "Repo", *arguments: str, allowed: tuple[int, ...] = (0,)) -> str:
    """The output of a git command that reads, without its last newline.

    Raises:
        GitError: Its exit code isn't among ``allowed``; the message ends with what git said.
    """
    options = [word for setting in _QUIET for word in ("-c", setting)]
    status, output, complaint = repo.git.execute(
        ["git", *options, *arguments],
        env=_environment(repo),
        with_extended_output=True,
        with_exceptions=False,
        stdout_as_string=True,
    )
    if status not in allowed:
        said = str(complaint).strip().splitlines() or [f"exit code {status}"]
        raise GitError(f"{_where(repo)}: 'git {arguments[0]}' failed: {said[-1]}")
    return str(output).encode("utf-8", "backslashreplace").decode("utf-8")  # names and messages may be in any encoding


def _environment(repo: "Repo") -> dict[str, str]:
    """Say which repository is meant: in a hook, or under 'git bisect run', the caller's variables say another."""
    values = {
        "GIT_DIR": str(repo.git_dir),
        "GIT_COMMON_DIR": str(repo.common_dir),
        "GIT_OBJECT_DIRECTORY": str(Path(repo.common_dir) / "objects"),
        "GIT_INDEX_FILE": str(Path(repo.git_dir) / "index"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_CONFIG_COUNT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }
    return values | ({"GIT_WORK_TREE": str(repo.working_tree_dir)} if repo.working_tree_dir else {})


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


def _head(repo: "Repo", root: Path) -> str:
    try:
        return ask(repo, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except GitError as error:
        raise GitError(f"{root}: the repository has no commit checked out yet.") from error


def _kind_of(repo: "Repo", path: str) -> str | None:
    """``tree``, ``blob`` or ``commit`` (a submodule): what HEAD holds at a path, whatever the working tree holds."""
    words = ask(repo, "ls-tree", "--full-tree", "HEAD", "--", path).split()
    return words[1] if len(words) > 1 else None


def _open_submodule(root: Path) -> "Repo":
    import git

    try:
        repo = git.Repo(root / SUBMODULE, search_parent_directories=False)
        _head(repo, root)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, GitError) as error:
        raise GitError(
            f"{root}: the submodule {SUBMODULE} is not initialised. "
            f"Run: git -C {_quoted(root)} submodule update --init {SUBMODULE}"
        ) from error
    return repo


def _refuse_changes(repo: "Repo") -> None:
    if not repo.working_tree_dir:
        return
    entries = ask(repo, "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all").split("\0")
    changed = [entry[3:] for entry in entries if len(entry) > 3]
    if changed:
        shown = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
        raise GitError(
            f"{_where(repo)}: tracked files are changed ({shown}), and runs use committed code only. "
            "Commit or stash them, or go on without them: --allow-dirty."
        )


def _resolve(repo: "Repo", name: str) -> str:
    if not name or name.startswith("-"):
        raise GitError(f"'{name}' is no name of a commit.")
    try:
        return ask(repo, "rev-parse", "--verify", f"{name}^{{commit}}")
    except GitError as error:
        if "ambiguous" in str(error):
            raise GitError(f"{_where(repo)}: '{name}' is ambiguous. Give more digits of the SHA.") from error
        is_shallow = ask(repo, "rev-parse", "--is-shallow-repository") == "true"
        advice = _unshallow(repo) if is_shallow else f"Is it fetched? Run: git -C {_quoted(_where(repo))} fetch --tags"
        raise GitError(
            f"{_where(repo)}: no commit '{name}' in this {'shallow ' if is_shallow else ''}clone. {advice}"
        ) from error


def _is_ancestor(repo: "Repo", older: str, newer: str) -> bool:
    base = ask(repo, "merge-base", older, newer, allowed=(0, 1)).split()
    return older in base


def _unrelated(repo: "Repo", good: tuple[str, str], bad: tuple[str, str], *, is_shallow: bool) -> GitError:
    where = _where(repo)
    if _is_ancestor(repo, bad[1], good[1]):
        return GitError(
            f"{where}: bad ({bad[0]}) comes before good ({good[0]}). Swap them: --good {bad[0]} --bad {good[0]}"
        )
    if is_shallow:
        return GitError(
            f"{where}: this clone is shallow, so it can't be seen that good comes before bad. {_unshallow(repo)}"
        )
    bases = ask(repo, "merge-base", good[1], bad[1], allowed=(0, 1)).split()
    if not bases:
        return GitError(f"{where}: good ({good[0]}) and bad ({bad[0]}) have no common history.")
    return GitError(
        f"{where}: good ({good[0]}) is not an ancestor of bad ({bad[0]}). Their merge base is {bases[0][:10]}: "
        f"if that is good too, take --good {bases[0][:10]}"
    )


def _off_the_line(good: str, line: tuple[CommitInfo, ...]) -> str:
    return (
        f"{good[:10]} is not on the first-parent line of {line[-1].short}: it came in with the merge {line[0].short}, "
        "which also brings in what the other side of the merge holds."
    )


def _unshallow(repo: "Repo") -> str:
    return f"Run: git -C {_quoted(_where(repo))} fetch --unshallow --tags"


def _where(repo: "Repo") -> Path:
    return Path(repo.working_tree_dir or repo.common_dir)


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
