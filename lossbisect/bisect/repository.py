"""A git repository, read only.

Nothing here writes: not a ref, not the index (``git status`` would, without ``GIT_OPTIONAL_LOCKS=0``), and no hook,
file-system monitor or fetch is set off.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["ask", "is_ancestor", "is_shallow", "open_repository", "quoted", "unshallow", "where"]

_QUIET = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "log.showSignature=false", "core.quotePath=false")


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
        return git.Repo(path.resolve(), search_parent_directories=True, expand_vars=False)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise GitError(
            f"{path}: not a git checkout. Clone the repository, a copy of its files isn't enough."
        ) from error


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
        raise GitError(f"{where(repo)}: 'git {arguments[0]}' failed: {said[-1]}")
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


def is_ancestor(repo: "Repo", older: str, newer: str) -> bool:
    """One commit is the other or comes before it."""
    base = ask(repo, "merge-base", older, newer, allowed=(0, 1)).split()
    return older in base


def is_shallow(repo: "Repo") -> bool:
    """Older commits are missing in this clone."""
    return ask(repo, "rev-parse", "--is-shallow-repository") == "true"


def unshallow(repo: "Repo") -> str:
    """The command that fetches what a shallow clone lacks, as a sentence."""
    return f"Run: git -C {quoted(where(repo))} fetch --unshallow --tags"


def where(repo: "Repo") -> Path:
    """The folder by which a person knows a repository."""
    return Path(repo.working_tree_dir or repo.common_dir)


def quoted(path: Path) -> str:
    """A path as a shell takes it."""
    import shlex

    return shlex.quote(str(path))
