"""How soon a change at the newest commits is seen, beside Apache Otava on the same simulated series.

    pip install apache-otava     # for the comparison; it is no dependency of lossbisect
    python -m benchmarks.history [--seed N] [--series N]

Series of 40 runs of normal noise; the last k of them are shifted. Otava's significance is chosen such that about as
many unshifted series as ours raise a false alarm, 2 %. An alarm counts if it lies at the shift (one commit before or
after it), or, in an unshifted series, anywhere (Otava) or at the tip (ours, which looks nowhere else: its rate is for
one look at the tip, Otava's for the whole series). Repeats: m runs of the newest commit instead of one.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial

import numpy as np

from lossbisect.triage.tip import tip_test

LENGTH = 40
RATE = 0.02
OTAVA_P = 1e-3
SHIFT = 3.0
"""In standard deviations of one run's noise."""

type Series = np.ndarray[tuple[int], np.dtype[np.float64]]


def ours(series: Series, newest: int) -> bool:
    """Our alarm at the newest runs."""
    found = tip_test(list(series[:-newest]), list(series[-newest:]), false_alarm_rate=RATE)
    return found is not None and found.is_alarm


def otava(series: Series, p_value: float) -> list[int]:
    """Where Otava sees changes."""
    from otava.analysis import compute_change_points

    # One window: with several, Otava 0.8 may find one change twice and then stop with an error.
    found, _ = compute_change_points(series, window_len=2 * LENGTH, max_pvalue=p_value, min_magnitude=0.0)
    return [point.index for point in found]


def otava_sees(series: Series, at: int, p_value: float) -> bool:
    """Otava's alarm at a place."""
    return any(abs(found - at) <= 1 for found in otava(series, p_value))


def share(rng: np.random.Generator, count: int, alarm: Callable[[Series], bool], newest: int, shift: float) -> float:
    """Share of series with an alarm."""
    hits = 0
    for _ in range(count):
        series = rng.standard_normal(LENGTH)
        if newest:
            series[-newest:] += shift
        hits += alarm(series)
    return hits / count


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261130)
    chosen = parser.parse_args()
    count, seed = chosen.series, chosen.seed
    print(f"seed {seed}, {count} series of {LENGTH} runs each, shift {SHIFT} sigma, aimed at {RATE:.0%} false alarms")
    print("ours, one run a commit (k newest commits) and m repeats of the newest commit alone:")
    for newest in (1, 2, 3, 4):
        rng = np.random.default_rng([seed, newest])
        alarm = partial(ours, newest=newest)
        false = share(rng, count, alarm, 0, 0.0)
        power = share(rng, count, alarm, newest, SHIFT)
        print(f"  {newest} runs at the tip: power {power:.3f}, false alarms {false:.3f}")
    try:
        import otava as _  # noqa: F401
    except ImportError:
        print("Otava isn't installed: pip install apache-otava")
        return 0
    rng = np.random.default_rng([seed, 99])
    p_value, false = calibrated(rng, count)
    print(f"Otava, p <= {p_value:g}: false series {false:.3f}")
    for newest in (1, 2, 3, 4):
        rng = np.random.default_rng([seed, newest])
        power = share(rng, count, partial(otava_sees, at=LENGTH - newest, p_value=p_value), newest, SHIFT)
        print(f"  {newest} commits after the change: power {power:.3f}")
    return 0


def calibrated(rng: np.random.Generator, count: int) -> tuple[float, float]:
    """Otava's significance whose share of false series is nearest to ours, and that share."""
    nulls = [rng.standard_normal(LENGTH) for _ in range(count)]
    tried = []
    for p_value in (factor * OTAVA_P for factor in (0.25, 0.5, 0.7, 0.85, 1.0, 1.5, 2.0)):
        false = sum(bool(otava(series, p_value)) for series in nulls) / count
        tried.append((abs(false - RATE), p_value, false))
    return min(tried)[1:]


if __name__ == "__main__":
    sys.exit(main())
