"""Looking at a run while it goes on."""

import numpy as np

from lossbisect.compare.effect import ALPHA, null_curves, row_widths
from lossbisect.compare.sequential import first_alarm, looks
from lossbisect.compare.watching import Watch
from tests.compare.logs import make_log
from tests.compare.simulate import heavy_noise, printed

SEED = 20260822
ROWS = 1000


def test_looks_spend_no_more_than_alpha_however_many_there_are() -> None:
    """A union bound."""
    assert sum(share for _, share in looks(10**9)) < ALPHA
    counts = [count for count, _ in looks(ROWS)]
    assert counts == sorted(set(counts))
    assert counts[0] == 16


def test_looking_after_every_row_keeps_the_false_alarms() -> None:
    """1,000 rows, looked at after each: no more than the nominal 1 % of equal runs are stopped."""
    rng = np.random.default_rng(SEED)
    stopped, runs = 0, 120
    for _ in range(runs):
        noise = heavy_noise(rng, 5, ROWS, width=4e-4)
        baseline, candidate = noise[:-1], noise[-1]
        nulls = null_curves(baseline, candidate[None, :])
        widths = row_widths(nulls, np.zeros(ROWS))
        stopped += first_alarm((candidate - baseline.mean(0)) / widths, nulls / widths, 3) is not None
    print(f"seed {SEED}: {stopped} of {runs} equal runs stopped")  # noqa: T201
    assert stopped <= ALPHA * runs


def test_row_by_row_is_the_same_as_all_at_once() -> None:
    """The alarm comes at the look that the whole run names, and not before."""
    rng = np.random.default_rng(SEED)
    noise = heavy_noise(rng, 5, 200, width=4e-4)
    noise[-1, 50:] += 3e-3
    nulls = null_curves(noise[:-1], noise[-1:])
    widths = row_widths(nulls, np.zeros(200))
    standard = (noise[-1] - noise[:-1].mean(0)) / widths
    alarm = first_alarm(standard, nulls / widths, 3)
    assert alarm is not None
    assert 50 < alarm < 120
    assert first_alarm(standard[: alarm - 1], nulls / widths, 3) is None
    assert first_alarm(standard[:alarm], nulls / widths, 3) == alarm


def test_watch_prints_each_row_once_and_again_after_a_restart() -> None:
    """A rotated log loses no row; a restarted run's new value counts."""
    base = [5.0 - 0.1 * row for row in range(10)]
    watch = Watch(make_log(base))
    assert len(watch.update(make_log(base[:3])).lines) == 3
    assert watch.update(make_log(base[:3])).lines == ()
    rotated = watch.update(make_log(base[3:5], first=4))
    assert (len(rotated.lines), rotated.last, rotated.alarm) == (2, 5, None)
    again = watch.update(make_log([base[3], base[4] + 1e-6], first=4))
    assert again.lines == ("iteration 5: 4.600000 vs 4.600001  +2.2e-7",)


def test_watch_waits_for_more_than_a_spike() -> None:
    """One row beyond the noise is no sure divergence; three of five are."""
    base = [5.0] * 10
    watch = Watch(make_log(base))
    assert watch.update(make_log([5.0, 5.0, 5.1])).alarm is None
    assert watch.update(make_log([5.0, 5.0, 5.1, 5.1])).alarm is None
    alarm = watch.update(make_log([5.0, 5.0, 5.1, 5.1, 5.1])).alarm
    assert alarm is not None
    assert "diverges from iteration 3 on" in alarm


def test_watch_stops_at_a_nan_and_at_a_digit_where_exact_was_asked_for() -> None:
    """Neither can be noise."""
    assert Watch(make_log([5.0] * 4)).update(make_log([5.0, 5.0, float("nan")])).alarm is not None
    assert Watch(make_log([5.0] * 4), tolerance=0.0).update(make_log([5.0, 5.000001])).alarm is not None


def test_watch_finds_a_shift_by_its_repeats() -> None:
    """Smaller than any single row shows."""
    rng = np.random.default_rng(SEED)
    noise = heavy_noise(rng, 5, 200, width=4e-4)
    noise[-1] += 2e-3
    base, *more, run = (make_log(printed(8.0 * (1 + row))) for row in noise)
    alarm = Watch(base, repeats=tuple(more)).update(run).alarm
    assert alarm is not None
    assert "shifted beyond 3 repeats" in alarm
    assert Watch(base, repeats=tuple(more[1:])).update(more[0]).alarm is None
