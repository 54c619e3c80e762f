"""What the checks of other projects say of two curves, rule for rule, so that a user can see what CI would have said.

Each takes two curves as iteration to value and says whether the check is green. They are reproduced with what they
can't see: a NaN that isn't printed, for one. Sources, as of August 2026: Megatron-LM
``tests/functional_tests/python_test_utils/common.py``, Megatron Bridge ``scripts/performance/utils/evaluate.py``,
torchtitan ``scripts/loss_compare.py``.
"""

import math
from collections.abc import Mapping

from lossbisect.compare.types import RuleResult
from lossbisect.compare.wording import relative_text

__all__ = ["PRESETS", "apply_preset", "bridge", "megatron_lm", "torchtitan"]

PRESETS = ("megatron-lm", "bridge", "torchtitan")

type Curve = Mapping[int, float | None]

_MEGATRON_RTOL = {"num_zeros": 0.20}
_MEGATRON_RTOL_ELSE = 0.05
_BRIDGE_CORRELATION = 0.95
_BRIDGE_OUTLIERS = 0.1
_BRIDGE_FINAL = 0.03


def apply_preset(name: str, metric: str, baseline: Curve, candidate: Curve) -> RuleResult:
    """The check of that name on two curves; a value is None where that side did not log it.

    Raises:
        ValueError: An unknown name.
    """
    if name == "megatron-lm":
        return megatron_lm(baseline, candidate, metric)
    if name == "bridge":
        return bridge(baseline, candidate)
    if name == "torchtitan":
        return torchtitan(baseline, candidate)
    raise ValueError(f"'{name}' is none of {', '.join(PRESETS)}.")


def megatron_lm(golden: Curve, actual: Curve, metric: str = "lm_loss") -> RuleResult:
    """The approximate golden test: 5 % (number of zeros: 20 %) of the golden value at all iterations but a few.

    One iteration in a hundred, at least one and at most 50, may be off. A value that is missing or NaN counts as
    infinite, and infinite equals infinite.
    """
    rtol = _MEGATRON_RTOL.get(metric, _MEGATRON_RTOL_ELSE)
    values = {step: _or_inf(value) for step, value in golden.items()}
    off = [step for step, value in values.items() if not _is_close(_or_inf(actual.get(step)), value, rtol)]
    allowed = min(max(len(values) // 100, 1), 50)
    return RuleResult(
        name="megatron-lm",
        passes=len(off) <= allowed,
        why=f"{len(off)} of {len(values)} iterations are off by more than {rtol:.0%}, and {allowed} may be",
    )


def bridge(golden: Curve, current: Curve) -> RuleResult:
    """Bridge's convergence check: correlation, 10/5/2 % by the size of the loss, the final loss, and residuals.

    As there, values are paired with iterations by position, so a row without a loss shifts all later ones.
    """
    from statistics import fmean, pstdev

    ours, theirs = _by_position(golden), _by_position(current)
    pairs = [(ours[step], theirs[step]) for step in sorted(ours.keys() & theirs.keys())]
    if not pairs:
        return RuleResult(name="bridge", passes=False, why="there is no iteration in common")
    off = sum(abs(now - gold) > _bridge_tolerance(gold) * (abs(gold) or 1.0) for gold, now in pairs)
    gold, now = pairs[-1]
    final = abs(now - gold) / gold if gold else abs(now)
    residuals = [now - gold for gold, now in pairs]
    mean, spread = fmean(residuals), pstdev(residuals)
    outliers = sum(abs(residual - mean) > 3 * spread for residual in residuals)
    correlation = _correlation(pairs)
    failed = [
        text
        for fails, text in (
            (correlation < _BRIDGE_CORRELATION, "the correlation"),
            (off > _BRIDGE_OUTLIERS * len(pairs), "the rows"),
            (final > _BRIDGE_FINAL, "the final loss"),
            (outliers > _BRIDGE_OUTLIERS * len(pairs), "the residuals"),
        )
        if fails
    ]
    figures = (
        f"correlation {correlation:.4f} (at least {_BRIDGE_CORRELATION}), {off} of {len(pairs)} rows off by more than "
        f"10/5/2 % (a tenth may be), final loss off by {relative_text(final)} (3 % at most)"
    )
    return RuleResult(
        name="bridge", passes=not failed, why=figures + (f": {', '.join(failed)} failed" if failed else "")
    )


def torchtitan(baseline: Curve, candidate: Curve) -> RuleResult:
    """Equality of every printed loss at the same iterations."""
    ours = {step: value for step, value in baseline.items() if value is not None}
    theirs = {step: value for step, value in candidate.items() if value is not None}
    if ours.keys() != theirs.keys():
        lack = len(ours.keys() ^ theirs.keys())
        return RuleResult(name="torchtitan", passes=False, why=f"{lack} iterations have a loss on one side only")
    unequal = [step for step in sorted(ours) if ours[step] != theirs[step]]
    if unequal:
        why = f"{len(unequal)} of {len(ours)} losses differ, the first at iteration {unequal[0]}"
    else:
        why = f"all {len(ours)} losses are equal"
    return RuleResult(name="torchtitan", passes=not unequal and bool(ours), why=why)


def _or_inf(value: float | None) -> float:
    return math.inf if value is None or math.isnan(value) else value


def _is_close(actual: float, golden: float, rtol: float) -> bool:
    """``numpy.isclose`` with ``atol=0``: relative to the golden value, infinite equal to infinite."""
    if not (math.isfinite(actual) and math.isfinite(golden)):
        return actual == golden
    return abs(actual - golden) <= rtol * abs(golden)


def _by_position(curve: Curve) -> dict[int, float]:
    """Iterations zipped with the values that the check's pattern finds: digits only, no NaN, nothing for a hole."""
    values = [value for value in curve.values() if value is not None and math.isfinite(value)]
    return dict(zip(curve, values, strict=False))


def _bridge_tolerance(golden: float) -> float:
    return 0.10 if golden > 2.0 else 0.05 if golden > 0.5 else 0.02


def _correlation(pairs: list[tuple[float, float]]) -> float:
    """Pearson's; NaN where a side is constant, which fails no comparison, as there."""
    from statistics import StatisticsError, correlation

    try:
        return correlation(*zip(*pairs, strict=True))
    except StatisticsError:
        return math.nan
