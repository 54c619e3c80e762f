"""What a run shows other than a curve: how it failed, whether it repeats itself. Pure, but for reading a console."""

import re
from dataclasses import dataclass

from lossbisect.bisect.judging import CurveVerdict, curve, measured_noise
from lossbisect.bisect.types import CommitVerdict
from lossbisect.cause import Cause
from lossbisect.compare.wording import metric_name, relative_text
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.failure import failure_of
from lossbisect.train.types import Outcome, RunRecord

__all__ = ["FailureSign", "failure_sign", "weigh_crash", "weigh_pair"]

_BY_TEXT = frozenset({"traceback", "import-error", "signal", "exit", "cuda-error", "incomplete"})
"""Kinds that hold many different failures: these are told apart by what they say."""
_VARYING = (re.compile(r"\S*/\S*"), re.compile(r"0x[0-9a-fA-F]+"), re.compile(r"\d+"))
"""Paths, addresses and numbers differ from run to run of one failure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureSign:
    """By what one failure is known again.

    Attributes:
        kind: Its name in `lossbisect.parsers.failures.FAILURE_KINDS`, ``traceback``, ``exit`` or ``incomplete``.
        words: What it says, without what differs from run to run; empty where the kind alone tells.
        text: What it says.
    """

    kind: str
    words: str
    text: str

    def is_like(self, other: "FailureSign") -> bool:
        """It is the same failure."""
        return (self.kind, self.words) == (other.kind, other.words)


def failure_sign(record: RunRecord) -> FailureSign | None:
    """How a run failed; None if it didn't, or if the infrastructure did, or a limit, or another code ran."""
    if record.outcome is not Outcome.FAILED or record.cause is Cause.INFRASTRUCTURE:
        return None
    if record.exit_code == 0:
        kind, text = "incomplete", record.reason
    else:
        found = failure_of(record.console, record.exit_code)
        if found.cause is Cause.INFRASTRUCTURE:
            return None
        kind, text = found.kind, found.text
    words = text if kind in _BY_TEXT else ""
    for varying in _VARYING:
        words = varying.sub("#", words)
    return FailureSign(kind=kind, words=words, text=text)


def weigh_crash(record: RunRecord, wanted: FailureSign) -> CurveVerdict:
    """Bad if the run fails as wanted, good if it finishes, other if it fails by itself in another way, else skip."""
    if record.outcome is Outcome.FINISHED:
        return CurveVerdict(verdict=CommitVerdict.GOOD, reason=f"it finishes, {record.reason}")
    sign = failure_sign(record)
    if sign is None:
        return CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"{record.outcome.value}: {record.reason}")
    if sign.is_like(wanted):
        return CurveVerdict(verdict=CommitVerdict.BAD, reason=f"it fails: {sign.text}")
    verdict = CommitVerdict.OTHER if record.cause is Cause.OWN else CommitVerdict.SKIP
    return CurveVerdict(verdict=verdict, reason=f"it fails in another way: {sign.text}")


def weigh_pair(first: RunLog, again: RunLog, *, metric: str, allowed_rel: float = 0.0) -> CurveVerdict:
    """Good if two runs of a commit are equal, bad if they differ.

    Args:
        first: One run.
        again: The other.
        metric: Column that is compared, at full precision.
        allowed_rel: Relative difference that counts as equal.
    """
    name = metric_name(metric)
    count = len(curve(first, metric))
    if count == 0:
        return CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"there is no {name} in it")
    noise = measured_noise(first, again, metric=metric)
    if noise is None:
        reason = f"one of its two runs has no {name}, or none that is finite, where the other has one"
        return CurveVerdict(verdict=CommitVerdict.BAD, reason=reason)
    largest = noise.surely_real_rel / 5
    if largest <= allowed_rel:
        how = "equal" if largest == 0 else f"within {relative_text(largest)}"
        return CurveVerdict(verdict=CommitVerdict.GOOD, reason=f"its two runs are {how} in all {count} iterations")
    return CurveVerdict(verdict=CommitVerdict.BAD, reason=f"its two runs differ by up to {relative_text(largest)}")
