"""From what a person calls a commit to its SHA.

A name is tried in this order, so that whatever git knows by a name keeps it:

1. what git knows: SHA, tag, branch, ``HEAD~3``;
2. a release: ``0.15.0`` is the tag ``core_v0.15.0``, ``0.6.0`` of Bridge its tag ``v0.6.0``;
3. a pull request: ``#4057`` is the commit whose subject ends with it, or with GitLab's ``!4057``;
4. a day, or a day and a time: ``2026-03-01`` is the newest commit of that day or before it.

``bridge:NAME`` is the commit of Megatron-LM that Bridge pins at its own commit NAME, named in the same ways. Where
Bridge itself is searched, names are those of its own commits.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lossbisect.bisect.codebase import SUBMODULE, CodeBase
from lossbisect.bisect.repository import ask, is_shallow, quoted, unshallow, where
from lossbisect.bisect.scope import Scope, Searched
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["Bump", "Ends", "latest_bump", "named_ends", "pin_of", "resolve", "searched_repo"]

_PIN = "bridge:"
_RELEASE = re.compile(r"v?\d+\.\d+(\.\d+)?([.-]?(rc|a|b|dev)\.?\d+)?")
_RELEASE_TAGS = ("core_v{}", "core_r{}", "v{}")
_PULL_REQUEST = re.compile(r"[#!](\d{1,7})")
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?P<time>[T ].+)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bump:
    """A commit of Bridge that moved its pin of Megatron-LM.

    Attributes:
        bridge_commit: Full SHA of the commit of Bridge.
        before: Full SHA of the pin before it.
        after: Full SHA of the pin that it set.
    """

    bridge_commit: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """Both ends of a range, by names that `resolve` takes.

    Attributes:
        good: The good end; None: it has to be looked for.
        bad: The bad end.
        notes: What was taken for an end that wasn't named, one sentence.
    """

    good: str | None
    bad: str
    notes: tuple[str, ...] = ()


def named_ends(code: CodeBase, good: str | None, bad: str | None, scope: Scope | None = None) -> Ends:
    """The ends, where one that wasn't named is taken from the checkout.

    A bad end that wasn't named is the commit that is checked out; with no end at all they are the pins of Bridge before
    and after its latest bump. A good end that wasn't named while the bad one or the oldest commit was, or Bridge is
    searched, has to be looked for.

    Args:
        code: The checkout.
        good: The good end.
        bad: The bad end.
        scope: Which commits are candidates; None: all of Megatron-LM's.

    Raises:
        GitError: They can't be taken from there.
    """
    scope = scope or Scope()
    if good is not None and scope.oldest is not None:
        raise GitError(f"Both a good end, {good}, and --oldest {scope.oldest} are named: leave one of them out.")
    head = code.mcore_head if scope.searched is Searched.MCORE else code.bridge_commit
    if head is None:
        raise GitError(f"{code.root}: a Megatron-LM checkout has no commits of Bridge to search. Leave --search out.")
    if bad is not None:
        return Ends(good=good, bad=bad)
    if good is not None or scope.oldest is not None or scope.searched is Searched.BRIDGE:
        return Ends(
            good=good, bad=head, notes=(f"No bad end was named: it is the commit that is checked out, {head[:10]}.",)
        )
    bump = latest_bump(code)
    note = (
        f"No ends were named: they are the pins of Megatron-LM before and after Bridge's latest bump, "
        f"{bump.bridge_commit[:10]}."
    )
    return Ends(good=bump.before, bad=bump.after, notes=(note,))


def searched_repo(code: CodeBase, searched: Searched) -> "Repo":
    """The repository whose commits are searched.

    Raises:
        GitError: It is Bridge's, and this is a Megatron-LM checkout.
    """
    if searched is Searched.MCORE:
        return code.mcore
    if code.bridge is None:
        raise GitError(f"{code.root}: a Megatron-LM checkout has no commits of Bridge to search. Leave --search out.")
    return code.bridge


def resolve(code: CodeBase, name: str, searched: Searched = Searched.MCORE) -> str:
    """The full SHA of a commit of the searched repository.

    Raises:
        GitError: There is no such commit in this clone.
    """
    if searched is Searched.BRIDGE:
        return _resolve(searched_repo(code, searched), name.removeprefix(_PIN))
    if not name.startswith(_PIN):
        return _resolve(code.mcore, name)
    if code.bridge is None:
        raise GitError(f"{name}: only a Megatron Bridge checkout has such pins, and {code.root} is Megatron-LM.")
    revision = _resolve(code.bridge, name.removeprefix(_PIN))
    pin = pin_of(code.bridge, revision)
    if pin is None:
        raise GitError(f"{name}: Bridge has no submodule {SUBMODULE} at {revision[:10]}. Name a commit of Megatron-LM.")
    return _resolve(code.mcore, pin)


def latest_bump(code: CodeBase) -> Bump:
    """The newest commit on the first-parent line of Bridge's HEAD that moved the pin.

    Raises:
        GitError: This is no Bridge checkout, or its pin never moved.
    """
    if code.bridge is None or code.bridge_commit is None:
        raise GitError(
            f"{code.root}: a Megatron-LM checkout pins nothing, so there is no range to take without being told. "
            "Name both ends: --good COMMIT --bad COMMIT"
        )
    line = ask(code.bridge, "log", "--first-parent", "--format=%H %P", code.bridge_commit, "--", SUBMODULE)
    for bump, *parents in map(str.split, line.splitlines()):
        before, after = (pin_of(code.bridge, parents[0]) if parents else None), pin_of(code.bridge, bump)
        if before and after and before != after:
            ends = (_resolve(code.mcore, before), _resolve(code.mcore, after))
            return Bump(bridge_commit=bump, before=ends[0], after=ends[1])
    raise GitError(
        f"{where(code.bridge)}: no commit of this clone moved the submodule {SUBMODULE}. "
        + (unshallow(code.bridge) if is_shallow(code.bridge) else "Name both ends: --good COMMIT --bad COMMIT")
    )


def pin_of(bridge: "Repo", revision: str) -> str | None:
    """Full SHA of the Megatron-LM that a commit of Bridge pins; None if it pins none."""
    words = ask(bridge, "ls-tree", "--full-tree", revision, "--", SUBMODULE).split()
    return words[2] if words[1:2] == ["commit"] else None


def _resolve(repo: "Repo", name: str) -> str:
    if not name.strip() or name.startswith("-"):
        raise GitError(f"'{name}' is no name of a commit.")
    for known in (name, *_release_tags(name)):
        if sha := _known(repo, known):
            return sha
    if _PULL_REQUEST.fullmatch(name):
        return _of_pull_request(repo, name)
    if day := _DAY.fullmatch(name):
        return _of_day(repo, name, has_time=day["time"] is not None)
    shallow = is_shallow(repo)
    advice = unshallow(repo) if shallow else f"Is it fetched? Run: {_fetch(repo, name)}"
    raise GitError(f"{where(repo)}: no commit '{name}' in this {'shallow ' if shallow else ''}clone. {advice}")


def _known(repo: "Repo", name: str) -> str | None:
    try:
        return ask(repo, "rev-parse", "--verify", f"{name}^{{commit}}")
    except GitError as error:
        if "ambiguous" in str(error):
            raise GitError(f"{where(repo)}: '{name}' is ambiguous. Give more digits of the SHA.") from error
        return None


def _release_tags(name: str) -> Iterator[str]:
    if _RELEASE.fullmatch(name):
        yield from (f"refs/tags/{tag.format(name.removeprefix('v'))}" for tag in _RELEASE_TAGS)


def _of_pull_request(repo: "Repo", name: str) -> str:
    # Matched as a whole: #12 must not find #123, nor a subject that only mentions it.
    ending = rf"\(#{name[1:]}\)$" if name[0] == "#" else rf"(^|[^0-9A-Za-z])!{name[1:]}($|[^0-9])"
    for tip in _tips(repo):
        shas = ask(repo, "log", "--first-parent", "--extended-regexp", f"--grep={ending}", "--format=%H", tip).split()
        if len(shas) == 1:
            return shas[0]
        if shas:
            shown = ", ".join(sha[:10] for sha in shas[:4])
            raise GitError(f"{where(repo)}: {len(shas)} commits say {name}: {shown}. Give the SHA of one.")
    raise GitError(
        f"{where(repo)}: no commit on the first-parent lines of {' and '.join(_tips(repo))} says {name}. "
        f"Is it fetched? Run: {_fetch(repo)}"
    )


def _of_day(repo: "Repo", name: str, *, has_time: bool) -> str:
    try:
        until = datetime.fromisoformat(name)
    except ValueError as error:
        raise GitError(f"'{name}' is no day: {error}. Write 2026-03-01 or 2026-03-01T12:00.") from None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    until = until if has_time else until + timedelta(days=1, seconds=-1)
    tip = _tips(repo)[0]
    found, latest_s = None, 0
    for sha, seconds in map(
        str.split, ask(repo, "log", "--first-parent", "--reverse", "--format=%H %ct", tip).splitlines()
    ):
        # Dates go back and forth; a commit is not there before the one that it stands on.
        latest_s = max(latest_s, int(seconds))
        if latest_s > until.timestamp():
            break
        found = sha
    if found is None:
        advice = unshallow(repo) if is_shallow(repo) else "Name a later day."
        raise GitError(f"{where(repo)}: {tip} has no commit of {name} or before. {advice}")
    return found


def _tips(repo: "Repo") -> list[str]:
    """The lines on which days and pull requests are looked up, best first.

    A submodule stands at its pin, away from any branch: what its remote calls the default branch goes on after it.
    """
    is_on_branch = ask(repo, "symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)) != ""
    remotes = [tip for tip in ("origin/HEAD", "origin/main", "origin/dev") if _known(repo, f"refs/remotes/{tip}")]
    return ["HEAD", *remotes] if is_on_branch or not remotes else [*remotes, "HEAD"]


def _fetch(repo: "Repo", name: str | None = None) -> str:
    """The command that may bring what is missing: a whole SHA by itself, all else with the branches and tags."""
    command = f"git -C {quoted(where(repo))} fetch"
    return f"{command} origin {name}" if name and re.fullmatch("[0-9a-f]{40}", name) else f"{command} --tags"
