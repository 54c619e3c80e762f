"""Commits of Bridge and of Megatron-LM that run together.

A run is named by the commit that is searched. With Megatron-LM's, Bridge stays at one commit; with Bridge's,
Megatron-LM is at the commit that it pins. Where the two are to be told apart, ``BRIDGE+MCORE`` names any two.
"""

from typing import TYPE_CHECKING

from lossbisect.bisect.codebase import SUBMODULE, CodeBase
from lossbisect.bisect.commits import commit_info
from lossbisect.bisect.names import pin_of
from lossbisect.bisect.scope import Searched
from lossbisect.bisect.types import CommitInfo, CommitRange
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["mix_of", "pair_of", "pair_range", "pin_at"]

_PLUS = "+"


def pair_of(
    code: CodeBase, commit: str, *, bridge_commit: str | None, searched: Searched = Searched.MCORE
) -> tuple[str, str | None]:
    """Full SHAs of Megatron-LM's and Bridge's commit that a run of ``commit`` uses.

    Args:
        code: The checkout.
        commit: The searched commit, or two with a plus between them.
        bridge_commit: Commit that Bridge stays at, or None.
        searched: Whose commit it is.

    Raises:
        GitError: A commit of Bridge pins no Megatron-LM.
    """
    bridge, plus, mcore = commit.partition(_PLUS)
    if plus:
        return mcore, bridge
    if searched is Searched.MCORE or code.bridge is None:
        return commit, bridge_commit
    return pin_at(code.bridge, commit), commit


def pin_at(bridge: "Repo", revision: str) -> str:
    """Full SHA of the Megatron-LM that a commit of Bridge pins.

    Raises:
        GitError: It pins none.
    """
    pin = pin_of(bridge, revision)
    if pin is None:
        raise GitError(f"Bridge's commit {revision[:10]} has no submodule {SUBMODULE}.")
    return pin


def mix_of(bridge: str, mcore: str) -> str:
    """The name of a run of two commits, full SHAs."""
    return f"{bridge}{_PLUS}{mcore}"


def pair_range(code: CodeBase, old: str, mix: str, new: str) -> CommitRange:
    """Both ends, and between them one way to mix them.

    Args:
        code: The checkout of Bridge.
        old: Full SHA of a commit of Bridge.
        mix: One of the two with the Megatron-LM of the other, as `mix_of` names it.
        new: Full SHA of a later one.
    """
    assert code.bridge is not None, "only Bridge has pairs"
    before, after = commit_info(code.bridge, old), commit_info(code.bridge, new)
    bridge, pinned_by = (before, after) if mix.startswith(old) else (after, before)
    mixed = CommitInfo(
        sha=mix,
        parents=(),
        author=bridge.author,
        email=bridge.email,
        date=bridge.date,
        subject=f"Bridge {bridge.short} with the Megatron-LM of {pinned_by.short}",
        pull_request=None,
    )
    return CommitRange(good=before, commits=(mixed, after))
