"""The bisect to run next, as a command to paste."""

import shlex
from pathlib import Path

from lossbisect.bisect.codebase import CodeBase, open_codebase
from lossbisect.bisect.commits import commit_info
from lossbisect.bisect.names import latest_bump, resolve
from lossbisect.bisect.repository import ask, is_ancestor
from lossbisect.errors import GitError

__all__ = ["next_bisect"]


def next_bisect(
    repo: Path, recipe: str, *, good: str | None, bad: str | None, named_by: str = "the range you named"
) -> tuple[str, str]:
    """The command, and why that range.

    Where the ends aren't said, they come from the checkout: a submodule that is ahead of what Bridge wants makes that
    range, else the commit of Bridge that moved its pin last does. With neither, the bisect looks for a good end itself.

    Args:
        repo: The checkout.
        recipe: The recipe to bisect with.
        good: Last commit known to be good, or None.
        bad: First commit known to be bad, or None.
        named_by: Where a range that is given comes from.

    Raises:
        GitError: There is no checkout, or no commit of a name that was given.
    """
    with open_codebase(repo, allow_dirty=True) as code:
        ends = _ends(code, good, bad, named_by)
        if ends is None:
            last = resolve(code, bad) if bad else code.mcore_head
            words = ["lossbisect", "bisect", "--repo", str(code.root), "--bad", last[:12], "--recipe", recipe]
            return shlex.join(words), (
                "without a good commit: it walks back to one with another curve first, which --good COMMIT spares"
            )
        first, last, why = ends
        count = int(ask(code.mcore, "rev-list", "--count", "--first-parent", f"{first}..{last}"))
        words = ["lossbisect", "bisect", "--repo", str(code.root), "--good", first[:12], "--bad", last[:12]]
        about = f"{why}: {count} commit{'' if count == 1 else 's'}, up to {commit_info(code.mcore, last).subject!r}"
        return shlex.join([*words, "--recipe", recipe]), about


def _ends(code: CodeBase, good: str | None, bad: str | None, named_by: str) -> tuple[str, str, str] | None:
    last = resolve(code, bad) if bad else code.mcore_head
    if good is not None:
        return resolve(code, good), last, named_by
    if code.bridge is None:
        return None
    try:
        wanted = resolve(code, "bridge:HEAD")
        if wanted != last and is_ancestor(code.mcore, wanted, last):
            return wanted, last, "from what Bridge wants to what is checked out"
        bump = latest_bump(code)
    except GitError:  # the pin never moved, or its commits aren't in this clone
        return None
    return bump.before, bump.after, f"the last move of Bridge's pin ({bump.bridge_commit[:10]})"
