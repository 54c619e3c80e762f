"""Commits that can't matter. Pure.

A run takes certain files from its tree, and looks certain others up (`train.reads`). A neighbouring commit whose
changes touch none of them gives the same run, and takes the same; so does the next one, until a commit touches
something. This is proven, given that the run is decided by what it reads: it rests on no guess about what a commit
means.
"""

from collections.abc import Sequence

from lossbisect.bisect.types import FileChange
from lossbisect.train.reads import Reads

__all__ = ["equal_span", "touches"]


def touches(changes: Sequence[FileChange], reads: Reads) -> bool:
    """Some change may alter a run that reads so."""
    return any(reads.is_touched_by(change.path, is_same_file=change.status == "modified") for change in changes)


def equal_span(index: int, changes: Sequence[Sequence[FileChange] | None], reads: Reads) -> range:
    """The commits around one whose run is its run.

    Args:
        index: The commit that ran; -1 is the good end.
        changes: What each commit of the range changed against the one before it, renames as a deletion and an addition;
            None where that isn't known.
        reads: What the run took.

    Returns:
        Indices, ``index`` among them.
    """
    first = index
    while first >= 0 and (changed := changes[first]) is not None and not touches(changed, reads):
        first -= 1
    last = index
    while last + 1 < len(changes) and (changed := changes[last + 1]) is not None and not touches(changed, reads):
        last += 1
    return range(first, last + 1)
