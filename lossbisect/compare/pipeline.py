"""From two logs to a judgement: align, measure the noise, compare each metric, judge."""

from dataclasses import replace

from lossbisect.compare.align import ITERATION, PERFORMANCE, align, metrics
from lossbisect.compare.config_diff import config_differences, settings_not_compared, unlisted_differences
from lossbisect.compare.diagnose import diagnose
from lossbisect.compare.ends import ends_of
from lossbisect.compare.gather import gathered
from lossbisect.compare.noise import default_noise, speed_noise, tolerance_noise, witness_noise
from lossbisect.compare.performance import performance
from lossbisect.compare.presets import apply_preset
from lossbisect.compare.repeats import MeasuredNoise, corrected, dated, measure, medians, tested
from lossbisect.compare.stats import difference
from lossbisect.compare.types import (
    AlignedCurves,
    Comparison,
    Difference,
    Ends,
    Judgement,
    NoiseFloor,
    Repeats,
    RuleResult,
)
from lossbisect.compare.verdict import judge
from lossbisect.parsers.runlog import RunLog

__all__ = ["NO_REPEATS", "compare_logs"]

NO_REPEATS = Repeats()
_BATCH = ("global_batch_size", "rampup_batch_size")
_WITNESSES = ("grad_norm", "num_zeros", "params_norm", "learning_rate", "loss_scale")


def compare_logs(
    baseline: RunLog,
    candidate: RunLog,
    *,
    metric: str = "lm_loss",
    tolerance: float | str | NoiseFloor | None = None,
    repeats: Repeats = NO_REPEATS,
    on: str = ITERATION,
    ends: Ends | None = None,
) -> Judgement:
    """Judge whether two logs show the same loss, and if not, since when.

    Args:
        baseline: The log to trust.
        candidate: The log to judge.
        metric: Column to judge by; the others that both logs have are witnesses.
        tolerance: Largest relative difference that counts as the same; 0: equal to the last digit; the name of another
            project's check (`lossbisect.compare.presets`); a noise floor; None: what the repeats show, or without any
            what the two runs' number formats explain.
        repeats: Further runs of either side. They measure the noise where no tolerance is given.
        on: What rows are matched by: ``iteration``, or ``consumed_samples`` where the batch sizes differ.
        ends: Where the runs end, if that isn't for these two logs alone to say.

    Raises:
        AlignmentError: The two can't be laid over each other: no such metric, or no iteration or interval in common.
        ValueError: A tolerance outside [0, 1).
    """
    names = (metric, *_witnesses(baseline, candidate, metric))
    pairs = {name: align(baseline, candidate, name, on=on) for name in names}
    floor = _floor(baseline, candidate, metric, tolerance)
    compared = _differences(baseline, candidate, pairs, floor, repeats if tolerance is None else NO_REPEATS)
    curves = pairs[metric]
    noise, differs = compared[metric]
    config = config_differences(baseline.config, candidate.config)
    if on != ITERATION:  # then another batch size is what the comparison is about
        config = tuple(item for item in config if item.field not in _BATCH)
    if differs.first_divergent == 1:
        config = tuple(sorted(config, key=lambda item: item.needs_update))
    ends = ends or ends_of(baseline, candidate)
    comparison = Comparison(
        curves=curves,
        noise=noise,
        difference=differs,
        witnesses={name: witness for name, (_, witness) in compared.items() if name != metric},
        witness_curves={name: pair for name, pair in pairs.items() if name != metric},
        witness_noise={name: own for name, (own, _) in compared.items() if name != metric},
        config=config,
        notes=(*_notes(baseline, candidate), *curves.dropped),
        baseline=str(baseline.path),
        candidate=str(candidate.path),
        rule=_rule(curves, tolerance),
        ends=ends,
        performance=performance(baseline, candidate, repeats),
        diagnoses=diagnose(
            gathered(
                baseline,
                candidate,
                curves=pairs,
                metric=metric,
                noise=noise,
                differences={name: item for name, (_, item) in compared.items()},
                config=config,
                ends=ends,
                are_medians=repeats.are_medians_shown,
            )
        ),
    )
    return judge(comparison)


def _floor(baseline: RunLog, candidate: RunLog, metric: str, tolerance: float | str | NoiseFloor | None) -> NoiseFloor:
    if isinstance(tolerance, NoiseFloor):
        return tolerance
    if tolerance is None or isinstance(tolerance, str):
        return speed_noise() if metric in PERFORMANCE else default_noise(baseline, candidate)
    return tolerance_noise(tolerance)


def _rule(curves: AlignedCurves, tolerance: float | str | NoiseFloor | None) -> RuleResult | None:
    if not isinstance(tolerance, str):
        return None
    sides = (dict(curves.frame.select("iteration", side).iter_rows()) for side in ("baseline", "candidate"))
    return apply_preset(tolerance, curves.metric, *sides)


def _differences(
    baseline: RunLog, candidate: RunLog, pairs: dict[str, AlignedCurves], floor: NoiseFloor, repeats: Repeats
) -> dict[str, tuple[NoiseFloor, Difference]]:
    """How each metric differs and by which noise that is judged; the first one's noise is given.

    Where medians are asked for, `pairs` get them in place of the two logs' own curves.
    """
    found: dict[str, tuple[NoiseFloor, Difference]] = {}
    measured: dict[str, MeasuredNoise] = {}
    for name, pair in list(pairs.items()):
        noise = witness_noise(floor, name) if found or measured else floor
        own = measure(pair, baseline, candidate, repeats) if repeats.count and name != "learning_rate" else None
        if own is None:
            found[name] = noise, difference(pair, noise)
        else:
            measured[name] = own
            if repeats.are_medians_shown:
                pair = pairs[name] = medians(pair, own)
            found[name] = own.floor, tested(difference(pair, own.floor), own)
    effects = {name: item.effect for name, (_, item) in found.items() if item.effect is not None}
    for name, effect in zip(effects, corrected(tuple(effects.values())), strict=True):
        noise, item = found[name]
        found[name] = noise, dated(replace(item, effect=effect), measured[name])
    return found


def _witnesses(baseline: RunLog, candidate: RunLog, metric: str) -> list[str]:
    """The other metrics that both logs have, the gradient norm first."""
    both = set(metrics(baseline)) & set(metrics(candidate)) - {metric}
    losses = sorted(name for name in both if name.endswith("loss"))
    return [name for name in (*_WITNESSES[:1], *losses, *_WITNESSES[1:]) if name in both]


def _notes(baseline: RunLog, candidate: RunLog) -> tuple[str, ...]:
    """What a reader of the verdict should know about the two logs."""
    notes: list[str] = []
    for side, log in (("baseline", baseline), ("candidate", candidate)):
        notes += [f"{side}{f', line {note.line_no}' if note.line_no else ''}: {note.text}" for note in log.notes]
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


def _last_iteration(log: RunLog) -> int:
    last = log.iterations["iteration"].max()
    return last if isinstance(last, int) else 0
