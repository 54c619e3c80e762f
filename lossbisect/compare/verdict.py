"""From a comparison to a verdict and one sentence that says why.

A verdict claims no more than the rows hold. SAME needs rows that reach past the first step of the optimizer, a value on
both sides in each of them, and no witness against it; DIVERGED needs a difference that no noise explains and that
stays. All else is UNDECIDED, and the sentence says what is missing.
"""

from collections.abc import Sequence

from lossbisect.compare.noise import SPEED_REL
from lossbisect.compare.performance import MORE_IS_WORSE
from lossbisect.compare.stats import ROWS_FOR_SHIFT, classify
from lossbisect.compare.types import (
    Comparison,
    ConfigDifference,
    Difference,
    Effect,
    Judgement,
    NoiseFloor,
    RuleResult,
    Verdict,
)
from lossbisect.compare.wording import counted, metric_name, p_text, relative_text, value_text

__all__ = ["COARSEST_REL", "ITERATIONS_FOR_SAME", "judge"]

ITERATIONS_FOR_SAME = 3
"""Iterations that SAME must reach: with a warmup from learning rate 0 the first two losses only show the initial
weights and the forward pass, and an error in the backward pass shows in the third."""
COARSEST_REL = 1e-2
"""Shift that must be found surely for SAME to mean anything: a third of what the coarsest check of others sees."""
_DOUBTFUL_SHARE = 0.01
"""Share of rows that may lie between noise and real in a pair that is called the same."""


def judge(comparison: Comparison) -> Judgement:
    """The verdict on a comparison."""
    difference = comparison.difference
    verdict = Verdict.SAME
    if comparison.rule is not None:
        verdict, reason = _by_rule(comparison, comparison.rule)
    elif _is_better(difference):
        reason = _same(comparison)
    elif difference.effect is not None and difference.effect.is_alarm:
        verdict, reason = Verdict.DIVERGED, _alarm(comparison, difference.effect)
    elif difference.first_divergent is not None:
        verdict, reason = Verdict.DIVERGED, _diverged(comparison, difference.first_divergent)
    elif difference.iterations == 0:
        verdict, reason = Verdict.UNDECIDED, _nothing_compared(comparison)
    elif _is_shifted(difference, comparison.noise):
        verdict, reason = Verdict.DIVERGED, _shifted(comparison)
    elif doubt := _doubt(comparison):
        verdict, reason = Verdict.UNDECIDED, doubt
    else:
        reason = _same(comparison)
    return Judgement(verdict=verdict, reason=f"{reason}.", comparison=comparison)


def _is_shifted(difference: Difference, noise: NoiseFloor) -> bool:
    limit, shift = noise.surely_shift_rel, difference.shift_rel
    return limit is not None and shift is not None and difference.iterations >= ROWS_FOR_SHIFT and abs(shift) > limit


def _is_better(difference: Difference) -> bool:
    """Whether a speed is judged and the candidate is the faster one by far: no news to stop for."""
    more_is_worse = MORE_IS_WORSE.get(difference.metric)
    shift = difference.shift_rel
    return more_is_worse is not None and shift is not None and (shift < 0) == more_is_worse and abs(shift) > SPEED_REL


def _doubt(comparison: Comparison) -> str | None:
    """Why neither SAME nor DIVERGED can be said; None if SAME can."""
    difference = comparison.difference
    name, count = metric_name(difference.metric), counted(difference.iterations, "iteration")
    missing = (*difference.only_baseline_missing, *difference.only_candidate_missing)
    if missing:
        return f"{name} {_broken(comparison, min(missing))}, and the logs don't tell what became of it"
    if difference.effect is not None:
        if doubt := _too_noisy(comparison, difference.effect):
            return doubt
    elif difference.spikes:
        return _spike(comparison, difference.spikes)
    elif difference.doubtful_rows > _DOUBTFUL_SHARE * difference.iterations:
        return _in_between(comparison)
    gradient = comparison.witnesses.get("grad_norm")
    if gradient is not None and gradient.first_divergent is not None:
        return (
            f"{name} is the same in {count}, but {_witness(gradient)}: "
            f"the backward pass differs, and an optimizer such as Adam hides a factor in it{_cause(comparison)}"
        )
    if _reach(comparison) < ITERATIONS_FOR_SAME:
        return (
            f"{name} is the same in {count}, which only shows that the initial weights and the forward pass agree: "
            f"{ITERATIONS_FOR_SAME} are needed"
        )
    if comparison.ends is not None and comparison.ends.cut is not None:
        return f"{name} is the same in {count}, but {comparison.ends.cut}"
    if comparison.ends is not None and comparison.ends.hole is not None:
        return f"{name} is the same in {count}, but {comparison.ends.hole}"
    return None


def _by_rule(comparison: Comparison, rule: RuleResult) -> tuple[Verdict, str]:
    """The verdict of another project's check; what it can't see is never called the same."""
    difference = comparison.difference
    text = f"the rule of {rule.name} {'passes' if rule.passes else 'fails'}: {rule.why}"
    broken = (*difference.only_baseline_missing, *difference.only_candidate_missing)
    if rule.passes and broken:
        name = metric_name(difference.metric)
        return Verdict.UNDECIDED, f"{text}; but {name} {_broken(comparison, min(broken))}, which it can't see"
    return (Verdict.SAME if rule.passes else Verdict.DIVERGED), text


def _alarm(comparison: Comparison, effect: Effect) -> str:
    """The reason for a shift that the repeats don't explain."""
    onset = f"from iteration {effect.onset} on"
    if effect.onset_low != effect.onset_high:
        onset += f" (95 %: {effect.onset_low} to {effect.onset_high})"
    difference = comparison.difference
    since = ""
    if effect.since_rel is not None and effect.since_rel != effect.shift_rel:
        since = f"from there on it lies {relative_text(effect.since_rel, is_signed=True)} off; over all rows "
    text = (
        f"{metric_name(difference.metric)} diverges {onset}; {since}its median shift is {_shift(effect)}, "
        f"{p_text(effect.p_value)} by {comparison.noise.source}"
    )
    if broken := (*difference.only_baseline_missing, *difference.only_candidate_missing):
        text += f", and it {_broken(comparison, min(broken))}"
    return text + _cause(comparison)


def _shift(effect: Effect) -> str:
    low, high = (relative_text(bound, is_signed=True) for bound in (effect.low_rel, effect.high_rel))
    return f"{relative_text(effect.shift_rel, is_signed=True)} relative ({1 - effect.alpha:.0%}: {low} to {high})"


def _too_noisy(comparison: Comparison, effect: Effect) -> str | None:
    """Why measured noise can't tell the same from diverged; None if it can."""
    if effect.detectable_rel <= COARSEST_REL:
        return None
    return (
        f"{metric_name(comparison.difference.metric)} shows no shift beyond {comparison.noise.source} "
        f"({p_text(effect.p_value)}), but they scatter so much that one below "
        f"{relative_text(effect.detectable_rel)} relative would be missed: repeat more often or train longer"
    )


def _reach(comparison: Comparison) -> int:
    """Iterations from the first one that the first row stands for to the last row."""
    first, last = (comparison.curves.frame.row(index, named=True) for index in (0, -1))
    return int(last["iteration"] - first["iteration"] + (first["window"] or 1))


def _same(comparison: Comparison) -> str:
    difference, noise = comparison.difference, comparison.noise
    name, count = metric_name(difference.metric), f"{counted(difference.iterations, 'iteration')} compared"
    if difference.metric in MORE_IS_WORSE and difference.shift_rel is not None:
        how = "better" if _is_better(difference) else "the same within " + noise.source
        return f"{name} is {how}: {relative_text(difference.shift_rel, is_signed=True)} at the median, {count}"
    if difference.is_identical:
        text = f"{name} is identical in every digit, {count}"
    elif difference.effect is not None:
        effect = difference.effect
        text = (
            f"{name} is the same within {noise.source}: median shift {_shift(effect)}, {p_text(effect.p_value)}, "
            f"{count}; a shift of {relative_text(effect.detectable_rel)} would have been found"
        )
    elif difference.first_difference is None:
        text = f"{name} is the same but for the last printed digit, {count}"
    else:
        within = f"the tolerance of {relative_text(noise.surely_noise_rel)}" if noise.source == "rtol" else noise.source
        text = f"{name} is the same within {within}: {_largest(difference)}, {count}"
    if comparison.ends is not None and comparison.ends.told is not None:
        text += f"; {comparison.ends.told}"
    moved = [witness for witness in comparison.witnesses.values() if witness.first_divergent is not None]
    if moved:
        text += f"; but {_witness(moved[0])}, so perhaps only its logging changed"
    if any(item.shape == "other-samples" for item in comparison.diagnoses):
        text += "; but consumed samples differ, so perhaps only their count changed"
    settings = _telling(comparison)
    if settings and settings[0].kind == "convergence":
        text += f"; {_clause(settings[0])}, with no effect beyond the noise so far"
    return text


def _diverged(comparison: Comparison, onset: int) -> str:
    difference = comparison.difference
    name = metric_name(difference.metric)
    iterations = comparison.curves.frame["iteration"]
    before = iterations.filter(iterations < onset).to_list()
    broken = (*difference.only_baseline_missing, *difference.only_candidate_missing)
    if onset in broken or _is_broken(comparison, onset):
        return f"{name} {_broken(comparison, onset)}{_before(comparison, before)}{_cause(comparison)}"
    if before:
        text = f"{name} diverges from iteration {onset}{_before(comparison, before)}"
    else:
        text = f"{name} differs from iteration {onset} on, the first one compared ({_values_at(comparison, onset)})"
    if broken:
        text += f", and {_broken(comparison, min(broken))}"
    elif difference.largest_at == onset:
        text += f", by {relative_text(difference.largest_rel or 0)} relative"
    elif before:
        text += (
            f", growing to {relative_text(difference.largest_rel or 0)} relative at iteration {difference.largest_at}"
        )
    else:
        text += f": {_largest(difference)}"
    return text + _cause(comparison)


def _shifted(comparison: Comparison) -> str:
    difference = comparison.difference
    shift = difference.shift_rel or 0.0
    where = f"{relative_text(abs(shift))} relative {'above' if shift > 0 else 'below'} the baseline"
    rows = counted(difference.iterations, "iteration")
    return (
        f"{metric_name(difference.metric)} lies {where} at the median of {rows}, "
        f"which {comparison.noise.source} doesn't explain{_cause(comparison)}"
    )


def _nothing_compared(comparison: Comparison) -> str:
    name, rows = metric_name(comparison.difference.metric), comparison.curves.frame.height
    return f"{name} is finite on both sides in none of the {counted(rows, 'iteration')} that both logs have"


def _spike(comparison: Comparison, spikes: Sequence[int]) -> str:
    more = f" and at {len(spikes) - 1} more" if len(spikes) > 1 else ""
    return (
        f"{metric_name(comparison.difference.metric)} differs at iteration {spikes[0]} "
        f"({_values_at(comparison, spikes[0])}){more} but returns each time: how it is logged, or a damaged row, "
        f"rather than training{_cause(comparison)}"
    )


def _in_between(comparison: Comparison) -> str:
    difference, noise = comparison.difference, comparison.noise
    return (
        f"{metric_name(difference.metric)} differs from iteration {difference.first_doubtful} on by more than "
        f"{noise.source} surely explains ({relative_text(noise.surely_noise_rel)}) and less than it surely can't "
        f"({relative_text(noise.surely_real_rel)}): {_largest(difference)}. Train longer, repeat a run, or say "
        f"--tolerance{_cause(comparison)}"
    )


def _before(comparison: Comparison, before: Sequence[int]) -> str:
    """What the iterations before the divergence were: equal, or within the noise."""
    if not before:
        return ""
    first = comparison.difference.first_difference
    doubtful = comparison.difference.first_doubtful
    if first is None or first > before[-1]:
        state = "equal"
    elif doubtful is None or doubtful > before[-1]:
        state = "within the noise"
    else:
        state = "close but not surely the same"
    if len(before) == 1:
        return f" (iteration {before[0]} {state})"
    join = "and" if len(before) == 2 else "to"
    return f" (iterations {before[0]} {join} {before[-1]} {state})"


def _is_broken(comparison: Comparison, iteration: int) -> bool:
    """Whether neither side has a number there that the other's could be compared with: NaN against infinity."""
    row = classify(comparison.curves, comparison.noise).filter(iteration=iteration)
    return bool(row["is_break"].any())


def _broken(comparison: Comparison, iteration: int) -> str:
    row = classify(comparison.curves, comparison.noise).filter(iteration=iteration).row(0, named=True)
    side, other = ("candidate", "baseline") if row["candidate_state"] != "finite" else ("baseline", "candidate")
    return f"is {row[f'{side}_state']} in the {side} at iteration {iteration}, {value_text(row[other])} in the {other}"


def _witness(difference: Difference) -> str:
    largest = f" (by up to {relative_text(difference.largest_rel)} relative)" if difference.largest_rel else ""
    return f"{metric_name(difference.metric)} differs from iteration {difference.first_divergent} on{largest}"


def _largest(difference: Difference) -> str:
    return (
        f"largest relative difference {relative_text(difference.largest_rel or 0)} at iteration {difference.largest_at}"
    )


def _cause(comparison: Comparison) -> str:
    """The most telling configuration difference as a clause."""
    settings = _telling(comparison)
    if not settings:
        return ""
    more = f" (and {counted(len(settings) - 1, 'more setting')})" if len(settings) > 1 else ""
    return f"; {_clause(settings[0])}{more}"


def _telling(comparison: Comparison) -> list[ConfigDifference]:
    """The settings that can explain a difference, most telling first.

    A setting of the optimizer can't explain a difference in the first loss. How a loss is computed explains one only
    where no setting does that changes the loss by itself.
    """
    is_at_once = comparison.difference.first_divergent == 1
    able = [item for item in comparison.config if not (is_at_once and item.needs_update)]
    return [item for item in able if item.kind == "convergence"] or able


def _clause(item: ConfigDifference) -> str:
    reason = f" ({item.reason})" if item.kind == "execution" else ""
    return f"{item.field} differs: {item.baseline} vs {item.candidate}{reason}"


def _values_at(comparison: Comparison, iteration: int) -> str:
    row = comparison.curves.frame.filter(iteration=iteration).row(0, named=True)
    return f"{value_text(row['baseline'])} vs {value_text(row['candidate'])}"
