"""Two logs in, one verdict out. Pure from the aligned curves on: numbers in, numbers out."""

from lossbisect.compare.align import align, metrics
from lossbisect.compare.config_diff import config_differences, settings_not_compared, unlisted_differences
from lossbisect.compare.noise import default_noise, parse_tolerance, tolerance_noise, witness_noise
from lossbisect.compare.stats import difference
from lossbisect.compare.types import (
    AlignedCurves,
    Comparison,
    ConfigDifference,
    Difference,
    Judgement,
    NoiseFloor,
    Verdict,
)
from lossbisect.compare.verdict import judge
from lossbisect.parsers.runlog import RunLog

__all__ = [
    "AlignedCurves",
    "Comparison",
    "ConfigDifference",
    "Difference",
    "Judgement",
    "NoiseFloor",
    "Verdict",
    "align",
    "compare_logs",
    "metrics",
    "parse_tolerance",
]

_WITNESSES = ("grad_norm", "num_zeros", "params_norm", "learning_rate", "loss_scale")


def compare_logs(
    baseline: RunLog, candidate: RunLog, *, metric: str = "lm_loss", tolerance: float | NoiseFloor | None = None
) -> Judgement:
    """Judge whether two logs show the same loss, and if not, since when.

    Args:
        baseline: The log to trust.
        candidate: The log to judge.
        metric: Column to judge by; the others that both logs have are witnesses.
        tolerance: Largest relative difference that counts as the same; 0: equal to the last digit; a measured noise
            floor; None: what the two runs' number formats explain.

    Raises:
        AlignmentError: The two can't be laid over each other: no such metric, or no iteration or interval in common.
        ValueError: A tolerance outside [0, 1).
    """
    noise = _noise(baseline, candidate, tolerance)
    curves = align(baseline, candidate, metric)
    differs = difference(curves, noise)
    config = config_differences(baseline.config, candidate.config)
    if differs.first_divergent == 1:
        config = tuple(sorted(config, key=lambda item: item.needs_update))
    comparison = Comparison(
        curves=curves,
        noise=noise,
        difference=differs,
        witnesses=_witnesses(baseline, candidate, metric, noise),
        config=config,
        notes=(*_notes(baseline, candidate), *curves.dropped),
        baseline=str(baseline.path),
        candidate=str(candidate.path),
    )
    return judge(comparison, _cut_short(baseline, candidate))


def _noise(baseline: RunLog, candidate: RunLog, tolerance: float | NoiseFloor | None) -> NoiseFloor:
    if isinstance(tolerance, NoiseFloor):
        return tolerance
    return default_noise(baseline, candidate) if tolerance is None else tolerance_noise(tolerance)


def _witnesses(baseline: RunLog, candidate: RunLog, metric: str, noise: NoiseFloor) -> dict[str, Difference]:
    """How the other metrics that both logs have differ, the gradient norm first."""
    both = set(metrics(baseline)) & set(metrics(candidate)) - {metric}
    losses = sorted(name for name in both if name.endswith("loss"))
    names = [name for name in (*_WITNESSES[:1], *losses, *_WITNESSES[1:]) if name in both]
    found: dict[str, Difference] = {}
    for name in names:
        floor = witness_noise(noise, name)
        found[name] = difference(align(baseline, candidate, name), floor)
    return found


def _notes(baseline: RunLog, candidate: RunLog) -> tuple[str, ...]:
    """What a reader of the verdict should know about the two logs."""
    notes: list[str] = []
    for side, log in (("baseline", baseline), ("candidate", candidate)):
        notes += [f"{side}: {note.text}" for note in log.notes]
        if log.failure is not None:
            where = f"after iteration {_last_iteration(log)}, line {log.failure.line_no}"
            notes.append(f"{side}: failed {where} ({log.failure.kind}): {log.failure.text}")
        if not log.config:
            notes.append(f"{side}: no configuration dump, so settings could not be compared.")
    if baseline.config and candidate.config:
        notes += _config_notes(baseline, candidate)
    if baseline.path == candidate.path:
        notes.append("baseline and candidate are the same file.")
    return tuple(notes)


def _config_notes(baseline: RunLog, candidate: RunLog) -> list[str]:
    notes = []
    unknown = settings_not_compared(baseline.config, candidate.config)
    if unknown:
        notes.append(f"Told by one dump only, so not compared: {', '.join(unknown)}.")
    others = unlisted_differences(baseline.config, candidate.config)
    if others:
        shown = ", ".join(f"{key} ({baseline.config[key]} vs {candidate.config[key]})" for key in others[:6])
        notes.append(f"Other settings that differ: {shown}{' and more' if others[6:] else ''}.")
    return notes


def _cut_short(baseline: RunLog, candidate: RunLog) -> str | None:
    """Which run a failure ended before the other's last iteration, as a clause."""
    ends = {"baseline": _last_iteration(baseline), "candidate": _last_iteration(candidate)}
    for side, other, log in (("candidate", "baseline", candidate), ("baseline", "candidate", baseline)):
        if log.failure is not None and ends[side] < ends[other]:
            end = f"the {side} failed after iteration {ends[side]} of {ends[other]}"
            return f"{end} ({log.failure.kind}: {log.failure.text})"
    return None


def _last_iteration(log: RunLog) -> int:
    last = log.iterations["iteration"].max()
    return last if isinstance(last, int) else 0
