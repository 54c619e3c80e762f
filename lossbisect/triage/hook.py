"""Git hooks that start a triage in the background, and what they run.

A hook never blocks git and never changes its outcome: it starts a process of its own and ends with the exit code of the
hook that was there before, which it runs first. One triage of a checkout runs at a time; whoever comes meanwhile leaves
a mark, and the running one goes on with the newest commit.
"""

import fcntl
import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lossbisect.bisect.codebase import open_codebase
from lossbisect.errors import GitError
from lossbisect.train import cache_directory

__all__ = ["HOOKS", "HookPlace", "background", "install", "place_of", "remove"]

HOOKS = ("post-commit", "post-merge", "post-checkout")
_MARK = "# Made by 'lossbisect hook install'; 'lossbisect hook remove' takes it away."
_KEPT = ".before-lossbisect"
_MOST_LOG_BYTES = 2_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class HookPlace:
    """What the hooks of a checkout write.

    Attributes:
        folder: Holds it all.
    """

    folder: Path

    @property
    def log(self) -> Path:
        """Everything that the background triages said."""
        return self.folder / "hook.log"

    @property
    def lock(self) -> Path:
        """Held by the triage that runs."""
        return self.folder / "lock"

    @property
    def waiting(self) -> Path:
        """There while a commit has landed that the running triage hasn't seen."""
        return self.folder / "waiting"


def place_of(root: Path) -> HookPlace:
    """Where the hooks of a checkout write: a folder in the cache directory."""
    name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:12]
    return HookPlace(folder=cache_directory() / "hooks" / name)


def install(repo: Path, options: tuple[str, ...] = ()) -> list[Path]:
    """Install the hooks of a checkout; of Bridge those of its submodule too. Hooks that are there run first.

    Args:
        repo: The checkout.
        options: Further words for ``lossbisect hook run``.

    Returns:
        The files that were written.

    Raises:
        GitError: The hooks' folder isn't the repository's own, or can't be written.
    """
    root, folders = _folders(repo)
    words = [sys.executable, "-m", "lossbisect", "hook", "run", "--repo", str(root), *options]
    written = []
    for folder in folders:
        for name in HOOKS:
            file = folder / name
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if (file.exists() or file.is_symlink()) and not _is_ours(file):
                    _refuse_second(file)
                    file.rename(_kept(file))
                unfinished = file.with_name(f"{name}.{os.getpid()}")
                unfinished.write_text(_script(name, words), encoding="utf-8")
                unfinished.chmod(0o755)
                unfinished.replace(file)
            except OSError as error:
                raise GitError(f"{file}: the hook can't be written: {error.strerror}.") from error
            written.append(file)
    return written


def remove(repo: Path) -> list[Path]:
    """Take the hooks away and put those back that were there before; others are left alone.

    Returns:
        The files that were removed or put back.

    Raises:
        GitError: The checkout isn't one, or a file can't be removed.
    """
    _, folders = _folders(repo)
    changed = []
    for file in (folder / name for folder in folders for name in HOOKS):
        try:
            if not _is_ours(file):
                continue
            if _kept(file).exists() or _kept(file).is_symlink():
                _kept(file).replace(file)
            else:
                file.unlink()
        except OSError as error:
            raise GitError(f"{file}: the hook can't be removed: {error.strerror}.") from error
        changed.append(file)
    return changed


def background(root: Path, work: Callable[[], None]) -> bool:
    """Do what a hook is for, unless another process is doing it for this checkout; then that one does it again.

    Args:
        root: The checkout.
        work: Judges the newest commit.

    Returns:
        Whether it was done here.
    """
    place = place_of(root)
    place.folder.mkdir(parents=True, exist_ok=True)
    place.waiting.touch()
    is_done = False
    # Asked again after the lock is given back: a mark set in between would otherwise be seen by nobody.
    while place.waiting.exists():
        with _held(place.lock) as is_held:
            if not is_held:
                return is_done
            while place.waiting.exists():
                place.waiting.unlink(missing_ok=True)
                work()
                is_done = True
    return is_done


def trimmed(log: Path) -> None:
    """Drop the older half of a log that has grown large."""
    if log.exists() and log.stat().st_size > _MOST_LOG_BYTES:
        log.write_bytes(log.read_bytes()[-_MOST_LOG_BYTES // 2 :])


@contextmanager
def _held(lock: Path) -> Iterator[bool]:
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _folders(repo: Path) -> tuple[Path, list[Path]]:
    with open_codebase(repo, allow_dirty=True) as code:
        repos = [code.mcore] if code.bridge is None else [code.bridge, code.mcore]
        return code.root, [_hooks_folder(Path(each.working_tree_dir or each.git_dir)) for each in repos]


def _hooks_folder(root: Path) -> Path:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(root), "rev-parse", "--path-format=absolute", "--git-path", "hooks", "--git-common-dir"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise GitError(f"{root}: git doesn't say where its hooks are: {done.stderr.strip()}")
    folder, own = map(Path, done.stdout.splitlines())
    if not folder.resolve().is_relative_to(own.resolve()):
        raise GitError(
            f"{folder}: core.hooksPath names a folder outside of {own}, which other repositories may use too. "
            "Let a hook of yours there start: lossbisect triage --since-last"
        )
    return folder


def _script(name: str, words: list[str]) -> str:
    only_branches = '[ "$3" = 0 ] && exit "$status"  # files were checked out, not a commit\n'
    return (
        f"#!/bin/sh\n{_MARK}\n"
        "status=0\n"
        f'before="$(dirname "$0")/{name}{_KEPT}"\n'
        'if [ -x "$before" ]; then "$before" "$@"; status=$?; fi\n'
        f"{only_branches if name == 'post-checkout' else ''}"
        "(\n"
        "  unset $(git rev-parse --local-env-vars)\n"
        f"  nohup {shlex.join(words)} </dev/null >/dev/null 2>&1 &\n"
        ") </dev/null >/dev/null 2>&1\n"
        'exit "$status"\n'
    )


def _is_ours(file: Path) -> bool:
    try:
        return _MARK in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _kept(file: Path) -> Path:
    return file.with_name(file.name + _KEPT)


def _refuse_second(file: Path) -> None:
    if _kept(file).exists():
        raise GitError(f"{_kept(file)}: is in the way of keeping {file.name}. Move one of the two away.")
