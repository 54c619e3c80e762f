"""Which runs say something about their commit for good. Pure."""

import re

from lossbisect.cause import Cause
from lossbisect.store.environment import disagreement
from lossbisect.store.types import RunKey
from lossbisect.train.types import Outcome, RunRecord

__all__ = ["why_not_kept"]

_MISSING_MODULE = re.compile(r"No module named '?([\w.]+)")


def why_not_kept(key: RunKey, record: RunRecord) -> str | None:
    """Why a run must not be found again later, in a clause; None if it may.

    A finished run is a result, one that was cut short is as far as it went, and so is a commit's own failure. A
    time-out, a node that died, a missing package or code from elsewhere are not: the run may end otherwise tomorrow.
    """
    ran = record.provenance
    if record.outcome not in (Outcome.FINISHED, Outcome.CUT, Outcome.FAILED):
        return f"the run is {record.outcome.value}"
    if ran is None:
        return "the run didn't say which code it used"
    if ran.mcore_commit != key.mcore_commit or ran.is_clean is not True:
        return "megatron.core wasn't the commit and nothing else"
    if key.bridge_commit is not None and (ran.bridge_commit != key.bridge_commit or ran.bridge_is_clean is not True):
        return "megatron.bridge wasn't the commit and nothing else"
    if record.outcome is Outcome.FAILED and not _is_the_commits_own(record):
        return "its failure may not be the commit's"
    return disagreement(key.environment, ran)


def _is_the_commits_own(record: RunRecord) -> bool:
    if record.cause is not Cause.OWN:
        return False
    missing = _MISSING_MODULE.search(record.reason)
    # Another package may be installed any time; Megatron's own modules come with the commit.
    return missing is None or missing[1].partition(".")[0] == "megatron"
