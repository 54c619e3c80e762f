"""Commits that the user's clone lacks: fetched from its own remotes into a repository of ours.

Nightly branches are rewritten, pull requests are squashed, and a submodule's clone knows nothing of pins that came
after it. Such a commit is still there on the remote: by its SHA, or as the head of its pull request. Ours has the
user's objects (by ``objects/info/alternates``) and a copy of the user's refs, so that it knows all that the user's
clone knows by the same names, and what was fetched. Nothing is written to the user's clone: no object, no ref.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.bisect.codebase import SUBMODULE, CodeBase
from lossbisect.bisect.names import pin_of, resolve, searched_repo
from lossbisect.bisect.repository import ask, where
from lossbisect.bisect.scope import Searched
from lossbisect.bisect.types import BisectPlan
from lossbisect.bisect.worktree import borrow
from lossbisect.errors import GitError
from lossbisect.redact import redact

if TYPE_CHECKING:
    from git import Repo

__all__ = ["Reach", "commits_of", "with_bridge", "with_pins", "within_reach"]

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PULL_REQUEST = re.compile(r"[#!](\d{1,7})")
_PIN = "bridge:"
_QUIET_S = 30
"""A remote that sends next to nothing for so long has gone away, seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """A checkout in which the named commits are known, as far as they can be had.

    Attributes:
        code: The user's checkout, or that with a repository of ours in a clone's place.
        names: Full SHAs for names that no clone knows, such as a pull request's that was never merged.
        notes: What was fetched, one sentence each.
    """

    code: CodeBase
    names: Mapping[str, str]
    notes: tuple[str, ...]

    def known[T: (str, str | None)](self, name: T) -> T:
        """The name by which the checkout knows a commit."""
        return name if name is None else self.names.get(name, name)


@contextmanager
def within_reach(
    code: CodeBase, names: Iterable[str | None], folder: Path, searched: Searched = Searched.MCORE
) -> Iterator[Reach]:
    """Fetch the commits among ``names`` that the clone lacks, each by its SHA or as a pull request's head.

    A commit that was fetched before isn't fetched again. A name that isn't one of a vanished commit is left alone.

    Args:
        code: The checkout.
        names: Names of commits as a user gives them; None is passed over.
        folder: The work directory. Ours is kept there, since a bisect that goes on needs it again.
        searched: Whose commits they are.

    Raises:
        GitError: A commit can't be had; the message says what was tried.
    """
    found: dict[str, str] = {}
    notes: list[str] = []
    opened: list[Repo] = []
    try:
        for name in [name for name in names if name]:
            wanted = _lacking(code, name, searched)
            if wanted is None:
                continue
            side, commit = wanted
            ours = _ours(searched_repo(code, side), folder)
            if ours not in opened:
                opened.append(ours)
            sha, is_new = _fetched(ours, commit)
            code = replace(code, mcore=ours) if side is Searched.MCORE else replace(code, bridge=ours)
            if is_new:
                notes.append(f"{commit} isn't in the clone: it was fetched from its remote, into a copy of our own.")
            if not _SHA.fullmatch(commit):
                found[name] = sha
        yield Reach(code=code, names=found, notes=tuple(notes))
    finally:
        for each in opened:
            each.close()


@contextmanager
def with_pins(code: CodeBase, good: str, bad: str, folder: Path) -> Iterator[CodeBase]:
    """The checkout with all that Bridge pins between two of its commits, as far as it can be had; full SHAs.

    A pin that can't be had makes its commits untestable, and nothing worse.
    """
    assert code.bridge is not None, "only Bridge has pins"
    movers = ask(code.bridge, "rev-list", "--first-parent", f"{good}..{bad}", "--", SUBMODULE).split()
    pins = {pin for commit in (good, bad, *movers) if (pin := pin_of(code.bridge, commit))}
    lacking = sorted(pin for pin in pins if not _knows(code.mcore, pin))
    if not lacking:
        yield code
        return
    ours = _ours(code.mcore, folder)
    try:
        for pin in lacking:
            try:
                _fetched(ours, pin)
            except GitError:
                continue
        yield replace(code, mcore=ours)
    finally:
        ours.close()


@contextmanager
def commits_of(code: CodeBase, plan: BisectPlan, root: Path) -> Iterator[CodeBase]:
    """The checkout in which a plan's commits are known: those that had to be fetched are kept in the work directory.

    Raises:
        GitError: One is gone, and can't be had again.
    """
    with ExitStack() as stack:
        names = (plan.good, plan.bad, *plan.stage.points)
        code = stack.enter_context(within_reach(code, names, root, plan.scope.searched)).code
        code = stack.enter_context(with_bridge(code, plan.bridge_commit, root))
        if plan.scope.searched is Searched.BRIDGE:
            code = stack.enter_context(with_pins(code, plan.good, plan.bad, root))
        yield code


@contextmanager
def with_bridge(code: CodeBase, name: str | None, root: Path) -> Iterator[CodeBase]:
    """The checkout in which the commit is known at which Bridge stays; None, or no Bridge: as it is.

    Raises:
        GitError: It can't be had.
    """
    if name is None or code.bridge is None:
        yield code
        return
    with within_reach(code, [name], root, Searched.BRIDGE) as reach:
        yield reach.code


def _lacking(code: CodeBase, name: str, searched: Searched) -> tuple[Searched, str] | None:
    """Whose clone lacks which SHA or pull request; None if the name is known, or isn't one of a vanished commit."""
    if name.startswith(_PIN) and searched is Searched.MCORE and code.bridge is not None:
        try:
            pin = pin_of(code.bridge, resolve(code, name.removeprefix(_PIN), Searched.BRIDGE))
        except GitError:
            return None
        return (Searched.MCORE, pin) if pin and not _knows(code.mcore, pin) else None
    name = name.removeprefix(_PIN)
    repo = searched_repo(code, searched)
    if _SHA.fullmatch(name):
        return None if _knows(repo, name) else (searched, name)
    if _PULL_REQUEST.fullmatch(name):
        try:
            resolve(code, name, searched)
        except GitError as error:
            return None if "commits say" in str(error) else (searched, name)
    return None


def _knows(repo: "Repo", sha: str) -> bool:
    return ask(repo, "rev-parse", "--quiet", "--verify", f"{sha}^{{commit}}", allowed=(0, 1, 128)) != ""


def _ours(source: "Repo", folder: Path) -> "Repo":
    """Our repository for a clone, with the clone's refs and remotes as they are now."""
    import git

    common, kept = Path(source.common_dir).resolve(), (folder / "fetched").resolve()
    if common.parent.parent == kept:
        return source  # it is ours already
    path = kept / hashlib.sha256(str(common).encode()).hexdigest()[:16]
    ours = git.Repo(path, expand_vars=False) if (path / ".git" / "HEAD").exists() else borrow(source, path)
    refs = ask(source, "for-each-ref", "--format=%(objectname) %(refname)")
    head = ask(source, "symbolic-ref", "--quiet", "HEAD", allowed=(0, 1))
    (path / ".git" / "packed-refs").write_text(refs + "\n", encoding="utf-8")
    at = f"ref: {head}" if head else ask(source, "rev-parse", "HEAD")
    (path / ".git" / "HEAD").write_text(f"{at}\n", encoding="utf-8")
    for remote in _remotes(source):
        url = ask(source, "config", "--get", f"remote.{remote}.url", allowed=(0, 1))
        nearby = where(source) / url
        ask(ours, "config", f"remote.{remote}.url", str(nearby.resolve()) if url and nearby.is_dir() else url)
    return ours


def _remotes(repo: "Repo") -> Sequence[str]:
    """Names of remotes, ``origin`` first."""
    return sorted(ask(repo, "remote").split(), key=lambda name: name != "origin")


def _fetched(ours: "Repo", commit: str) -> tuple[str, bool]:
    """Full SHA of what a SHA or a pull request's number names, and whether it had to be fetched now.

    Raises:
        GitError: No remote has it.
    """
    keep = f"refs/lossbisect/{commit.lstrip('#!')}"
    if _knows(ours, keep):
        return ask(ours, "rev-parse", f"{keep}^{{commit}}"), False
    number = _PULL_REQUEST.fullmatch(commit)
    asked = [f"refs/pull/{number[1]}/head", f"refs/merge-requests/{number[1]}/head"] if number else [commit]
    tried = []
    for remote in _remotes(ours):
        for name in asked:
            try:
                _fetch(ours, remote, f"+{name}:{keep}")
            except GitError as error:
                said = redact(str(error).partition("failed: ")[2])
                tried.append(f"{name if number else 'the SHA'} from {remote} ({said})")
                continue
            return ask(ours, "rev-parse", f"{keep}^{{commit}}"), True
    asked_of = f"Tried: {'; '.join(tried)}." if tried else "The clone has no remote to ask."
    raise GitError(f"{commit}: not in this clone, and it can't be fetched. {asked_of} Name a commit that is there.")


def _fetch(ours: "Repo", remote: str, refspec: str) -> None:
    # Kept as one pack: unpacked, objects that the user's clone has too would get a new time there.
    settings = ("fetch.unpackLimit=1", "http.lowSpeedLimit=100", f"http.lowSpeedTime={_QUIET_S}")
    options = [word for setting in settings for word in ("-c", setting)]
    ask(ours, *options, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote, refspec)
