"""Prints that mislead: no other training, but another print of it."""

from lossbisect.compare.evidence import Evidence, Pair
from lossbisect.compare.types import Diagnosis
from lossbisect.compare.wording import relative_text, value_text

__all__ = ["PRINTED"]

_MATCH = 0.75
"""Share of the rows that agree once they are shifted; in ten rows two may not, such as a second row that is a mean."""


def printing_artefact(evidence: Evidence) -> Diagnosis | None:
    """Only the print differs: a mean of two iterations in the second row, or the last digit."""
    loss = evidence.loss
    if loss.is_identical:
        return None
    if loss.first_difference is None and loss.first_divergent is None and loss.iterations:
        return Diagnosis(
            shape="last-digit",
            meaning="Only the last printed digit differs: a printing artefact, no sign of another training.",
            evidence=f"No row differs by more than its rounding; the largest difference is "
            f"{relative_text(loss.largest_rel or 0)}.",
            check_next="Nothing; TensorBoard holds more digits.",
        )
    return _second_row_mean(evidence)


def _second_row_mean(evidence: Evidence) -> Diagnosis | None:
    pairs = evidence.finite
    apart = [row for row, pair in enumerate(pairs) if _apart(evidence, pair)]
    if len(apart) != 1 or apart == [0]:
        return None
    pair, before = pairs[apart[0]], pairs[apart[0] - 1]
    for mean, own, prior in (
        (pair.candidate, pair.baseline, before.baseline),
        (pair.baseline, pair.candidate, before.candidate),
    ):
        assert mean is not None and own is not None and prior is not None
        if abs(2 * mean - prior - own) <= 3 * pair.quantum + 1e-6 * abs(own):
            return Diagnosis(
                shape="row-2-mean",
                meaning="One row is the mean of two iterations on one side: a printing artefact of Megatron-LM.",
                evidence=f"Iteration {pair.iteration} prints {value_text(mean)}, the mean of {value_text(prior)} "
                f"and {value_text(own)}; all other rows agree.",
                check_next="Nothing: core_v0.16 to core_v0.19 don't reset the sums after a process's first row.",
            )
    return None


def shifted_rows(evidence: Evidence) -> Diagnosis | None:
    """The candidate's curve is the baseline's, one or two iterations earlier or later."""
    pairs = evidence.finite
    if len(pairs) < 6 or _share_equal(evidence, pairs, 0) > 0.5:
        return None
    for lag in (1, -1, 2, -2):
        if (share := _share_equal(evidence, pairs, lag)) >= _MATCH:
            return Diagnosis(
                shape="row-shift",
                meaning=f"The candidate's rows are the baseline's, {abs(lag)} {'later' if lag > 0 else 'earlier'}: the "
                "values or the samples are shifted.",
                evidence=f"{share:.0%} of the rows agree once they are shifted by "
                f"{abs(lag)}, {_share_equal(evidence, pairs, 0):.0%} as they are.",
                check_next="consumed_train_samples at the start and after a resume, and a tool that counts from 0.",
            )
    return None


def _apart(evidence: Evidence, pair: Pair, before: Pair | None = None) -> bool:
    """Whether two values, the baseline's by choice of another row, differ beyond what is surely noise."""
    ours, theirs = (before or pair).baseline or 0.0, pair.candidate or 0.0
    limit = evidence.noise.surely_noise_rel * max(abs(ours), abs(theirs)) + pair.quantum
    return abs(theirs - ours) > limit


def _share_equal(evidence: Evidence, pairs: list[Pair], lag: int) -> float:
    """Share of rows whose candidate equals the baseline `lag` rows earlier."""
    later, earlier = pairs[max(0, lag) :], pairs[max(0, -lag) :]
    equal = [not _apart(evidence, pair, before) for pair, before in zip(later, earlier, strict=False)]
    return sum(equal) / len(equal)


PRINTED = (printing_artefact, shifted_rows)
"""No other training, but another print."""
