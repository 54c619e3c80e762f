"""The shift against measured noise: false alarms, power, and the date of the onset."""

import numpy as np
import pytest

from lossbisect.compare import Judgement, Repeats, Verdict, compare_logs
from lossbisect.compare.effect import ALPHA, holm, measured_noise, null_curves, row_widths, suffix_p_value
from lossbisect.compare.onset import onset_rows
from lossbisect.compare.types import Effect
from lossbisect.compare.wording import p_text
from tests.compare.logs import make_log
from tests.compare.simulate import heavy_noise, printed

SEED = 20260822
WIDTH = 4e-4


def alarms(rng: np.random.Generator, pairs: int, *, rows: int, repeats: int, shift: float, correlation: float) -> float:
    """Share of pairs that are alarms, the shift over all rows."""
    count = 0
    for _ in range(pairs):
        noise = heavy_noise(rng, repeats + 2, rows, width=WIDTH, correlation=correlation)
        baseline, candidate = noise[:-1], noise[-1:] + shift
        nulls = null_curves(baseline, candidate)
        widths = row_widths(nulls, np.zeros(rows))
        measured = measured_noise(nulls / widths, repeats)
        count += suffix_p_value((candidate.mean(0) - baseline.mean(0)) / widths, measured) <= ALPHA
    return count / pairs


@pytest.mark.parametrize(
    ("rows", "repeats", "correlation"),
    [(50, 1, 0.7), (50, 3, 0.5), (50, 5, 0.7), (200, 3, 0.7), (200, 1, 0.9), (200, 3, 0.0)],
)
def test_equal_pairs_are_no_alarm(rows: int, repeats: int, correlation: float) -> None:
    """Heavy-tailed, autocorrelated noise: no more alarms than the 1 % that is stated (with the simulation's error)."""
    rng = np.random.default_rng(SEED)
    share = alarms(rng, 400, rows=rows, repeats=repeats, shift=0.0, correlation=correlation)
    print(f"seed {SEED}: {share:.2%} false alarms")  # noqa: T201
    assert share <= 0.02


def test_shift_of_a_thousandth_is_found() -> None:
    """Where the checks of others need 3 to 5 %."""
    rng = np.random.default_rng(SEED)
    share = alarms(rng, 200, rows=200, repeats=3, shift=1e-3, correlation=0.7)
    print(f"seed {SEED}: {share:.1%} found")  # noqa: T201
    assert share >= 0.99


@pytest.mark.parametrize("shift", [1e-2, 1.0])
def test_large_shift_is_never_missed(shift: float) -> None:
    """Also where one short repeat leaves a long memory possible; only spikes are cut."""
    rng = np.random.default_rng(SEED)
    assert alarms(rng, 60, rows=50, repeats=1, shift=shift, correlation=0.9) == 1.0


@pytest.mark.parametrize("is_hidden", [False, True])
def test_onset_of_three_noise_widths_is_dated_to_the_iteration(*, is_hidden: bool) -> None:
    """Within one iteration in 95 of 100 cases, and its interval holds it as often as it says.

    Whether the noise is an autoregression, or a longer one under as much white noise.
    """
    rng = np.random.default_rng(SEED)
    near = held = 0
    for _ in range(200):
        noise = heavy_noise(rng, 5, 200, width=1.0)
        if is_hidden:
            parts = (heavy_noise(rng, 5, 200, width=0.5**0.5, correlation=carry) for carry in (0.9, 0.0))
            noise = sum(parts, np.zeros((5, 200)))
        onset = int(rng.integers(5, 100))
        noise[-1, onset:] += 3.0
        nulls = null_curves(noise[:-1], noise[-1:])
        widths = row_widths(nulls, np.zeros(200))
        low, best, high = onset_rows((noise[-1] - noise[:-1].mean(0)) / widths, nulls / widths, 3)
        near += abs(best - onset) <= 1
        held += low <= onset <= high
    print(f"seed {SEED}: {near / 200:.1%} within one, interval holds {held / 200:.1%}")  # noqa: T201
    assert near >= 190
    assert held >= 190


def judged(shift: float, *, since: int = 0, repeats: int = 3, spike: float = 0.0) -> Judgement:
    """A candidate against a baseline and its repeats, through the whole comparison."""
    rng = np.random.default_rng(SEED)
    curve = np.linspace(10.4, 7.4, 200)
    noise = heavy_noise(rng, repeats + 2, 200, width=WIDTH)
    noise[-1, since:] += shift
    noise[-1, 100] += spike
    base, *more, candidate = (make_log(printed(curve * (1 + row))) for row in noise)
    return compare_logs(base, candidate, repeats=Repeats(baseline=tuple(more)))


def test_repeats_are_named_and_give_a_p_value() -> None:
    """The sentence holds the source, the effect with its interval, and what would have been found."""
    judgement = judged(0.0)
    assert judgement.verdict is Verdict.SAME
    assert judgement.comparison.noise.source == "3 repeats"
    assert "the same within 3 repeats: median shift" in judgement.reason
    assert "would have been found" in judgement.reason


def test_shift_is_diverged_with_its_onset_and_interval() -> None:
    """A late shift of 2e-3 is dated with an error."""
    judgement = judged(2e-3, since=80)
    effect = judgement.comparison.difference.effect
    assert judgement.verdict is Verdict.DIVERGED
    assert effect is not None
    assert effect.onset_low is not None
    assert effect.onset_high is not None
    assert effect.onset_low <= 81 <= effect.onset_high
    assert judgement.comparison.difference.first_divergent == effect.onset
    assert effect.p_value <= ALPHA
    assert "by 3 repeats" in judgement.reason


def test_interval_holds_the_true_shift() -> None:
    """A shift over all rows lies in the 99 % interval."""
    effect = judged(2e-3).comparison.difference.effect
    assert effect is not None
    assert effect.low_rel <= 2e-3 <= effect.high_rel


def test_spike_does_not_decide() -> None:
    """One row off by 30 % moves no median."""
    assert judged(0.0, spike=0.3).verdict is Verdict.SAME


def test_repeats_equal_in_every_digit_make_any_difference_real() -> None:
    """Then a shift of 1e-4, and even a last digit, is news."""
    base = [10.0 - 0.1 * row for row in range(20)]
    log, moved = make_log(base), make_log([*base[:12], *(value * (1 + 1e-4) for value in base[12:])])
    judgement = compare_logs(log, moved, repeats=Repeats(baseline=(log,)))
    assert judgement.verdict is Verdict.DIVERGED
    assert judgement.comparison.difference.first_divergent == 13
    assert judgement.comparison.noise.source == "1 repeat equal in every digit"
    assert judgement.comparison.difference.effect is None


def test_without_repeats_there_is_no_p_value() -> None:
    """No null was measured."""
    log = make_log([5.0] * 30)
    assert compare_logs(log, log).comparison.difference.effect is None


def test_repeats_of_the_candidate_count_too() -> None:
    """Either side's repeats measure the noise."""
    rng = np.random.default_rng(SEED)
    noise = heavy_noise(rng, 5, 100, width=WIDTH)
    base, other, *more = (make_log(printed(8.0 * (1 + row))) for row in noise)
    judgement = compare_logs(base, other, repeats=Repeats(candidate=tuple(more)))
    assert judgement.verdict is Verdict.SAME
    assert judgement.comparison.noise.source == "3 repeats"


def test_noise_that_hides_a_hundredth_is_undecided() -> None:
    """The same within noise of 10 % means nothing."""
    rng = np.random.default_rng(SEED)
    base, other, more = (make_log(printed(8.0 * (1 + row))) for row in heavy_noise(rng, 3, 60, width=0.1))
    judgement = compare_logs(base, other, repeats=Repeats(baseline=(more,)))
    assert judgement.verdict is Verdict.UNDECIDED
    assert "repeat more often or train longer" in judgement.reason


def test_several_metrics_are_corrected_for_their_number() -> None:
    """Holm: the smallest times three, the next times two, never falling."""
    effects = [
        Effect(shift_rel=0.0, low_rel=0.0, high_rel=0.0, p_value=p_value, alpha=ALPHA, detectable_rel=0.0, rows=50)
        for p_value in (0.02, 0.001, 0.5)
    ]
    assert [effect.p_value for effect in holm(effects)] == pytest.approx([0.04, 0.003, 0.5])


@pytest.mark.parametrize(
    ("p_value", "text"), [(0.02, "p = 0.02"), (1.0, "p = 1"), (3e-8, "p = 3e-08"), (1e-40, "p < 1e-9")]
)
def test_p_values_are_told_as_far_as_they_mean_something(p_value: float, text: str) -> None:
    """No model of noise holds at 1e-40."""
    assert p_text(p_value) == text


def test_shift_since_its_onset_is_told_beside_that_over_all_rows() -> None:
    """A late shift moves the median over all rows by less."""
    judgement = judged(4e-3, since=120)
    effect = judgement.comparison.difference.effect
    assert effect is not None
    assert effect.since_rel == pytest.approx(4e-3, rel=0.2)
    assert abs(effect.shift_rel) < 2e-3
    assert "from there on it lies +" in judgement.reason
