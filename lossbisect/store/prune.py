"""Which runs go. Pure."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from lossbisect.store.types import StoredRun

__all__ = ["to_prune"]


def to_prune(
    runs: Sequence[StoredRun],
    *,
    now: datetime,
    older_than: timedelta | None = None,
    max_bytes: int | None = None,
    keep: int | None = None,
) -> list[StoredRun]:
    """Runs to remove, the oldest first: all that any of the limits names, and those that are of no use any more.

    Args:
        runs: All runs.
        now: The present.
        older_than: Remove what was stored longer ago.
        max_bytes: Remove the oldest until the rest is no larger.
        keep: Of each recipe, trainer and lane keep this many of the newest.
    """
    newest_first = sorted(runs, key=lambda run: (run.added_at, run.id), reverse=True)
    seen: Counter[tuple[str, str, str]] = Counter()
    kept_bytes = 0
    removed: list[StoredRun] = []
    for run in newest_first:
        group = (run.recipe_digest, run.record.spec.trainer.value, run.record.spec.lane.value)
        is_useless = run.is_stale or not run.record.out.is_dir()
        is_old = older_than is not None and now - run.added_at > older_than
        is_beyond = keep is not None and seen[group] >= keep
        is_too_much = max_bytes is not None and kept_bytes + run.size_bytes > max_bytes
        if is_useless or is_old or is_beyond or is_too_much:
            removed.append(run)
            if is_too_much and not (is_useless or is_old or is_beyond):
                max_bytes = kept_bytes  # what is older goes too, however small
        else:
            seen[group] += 1
            kept_bytes += run.size_bytes
    return removed[::-1]
