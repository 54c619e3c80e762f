"""The noise's memory: found, taken out, and never by looking ahead."""

import numpy as np
import pytest

from lossbisect.compare.memory import Memory, innovations, likely_memories
from tests.compare.simulate import heavy_noise

SEED = 20260822


def share_of_long(nulls: np.ndarray, repeats: int, gain: float) -> float:
    """How likely it is by the repeats that noise adds up at least so much."""
    return sum(likely.probability for likely in likely_memories(nulls, repeats) if likely.memory.gain >= gain)


@pytest.mark.parametrize("correlation", [0.0, 0.7, 0.9])
def test_memory_of_the_noise_is_hardly_ever_held_for_impossible(correlation: float) -> None:
    """Noise that adds up more than was allowed for makes false alarms; one that is held for endless finds nothing."""
    rng = np.random.default_rng(SEED)
    gain = 1 / (1 - correlation)
    draws = [heavy_noise(rng, 4, 100, width=1.0, correlation=correlation)[:-1] for _ in range(30)]
    true, endless = ([share_of_long(nulls, 3, factor * gain) for nulls in draws] for factor in (0.75, 6))
    print(f"seed {SEED}: least probability of the true gain {min(true):.2g}")  # noqa: T201
    assert sum(share >= 0.05 for share in true) >= 27
    assert np.median(endless) < 0.05


def test_probabilities_sum_to_one() -> None:
    """Each memory by its own."""
    rng = np.random.default_rng(SEED)
    assert sum(likely.probability for likely in likely_memories(rng.standard_normal((2, 60)), 1)) == pytest.approx(1.0)


def test_memory_under_white_noise_is_seen() -> None:
    """The correlation from one row to the next alone would miss most of it."""
    rng = np.random.default_rng(SEED)
    hidden = heavy_noise(rng, 4, 400, width=1.0, correlation=0.9) + heavy_noise(rng, 4, 400, width=1.0, correlation=0.0)
    best = max(likely_memories(hidden, 4), key=lambda likely: likely.probability).memory
    assert best.forgetting > 0
    assert best.gain > 1.8


def test_innovations_need_no_later_row_and_are_linear() -> None:
    """So a run that goes on is looked at as if it had ended."""
    rng = np.random.default_rng(SEED)
    curve = rng.standard_normal(60)
    memory = Memory(0.9, 0.6)
    new = innovations(curve, [memory])[0]
    assert innovations(curve[:25], [memory])[0] == pytest.approx(new[:25])
    assert innovations(0.5 * curve, [memory])[0] == pytest.approx(0.5 * new)


def test_innovations_of_such_noise_are_independent() -> None:
    """An autoregression under white noise, made by its own recursion and taken apart again."""
    rng = np.random.default_rng(SEED)
    new = rng.standard_normal(4000)
    memory = Memory(0.8, 0.5)
    noise = np.zeros(4000)
    for row in range(1, 4000):
        noise[row] = 0.8 * noise[row - 1] + new[row] - 0.5 * new[row - 1]
    assert innovations(noise, [memory])[0][50:] == pytest.approx(new[50:], abs=1e-3)


def test_shift_settles_at_its_share_and_a_spike_does_not_echo() -> None:
    """A shift by 1 stays 1 / gain; a spike counts as eight widths, which a few rows forget."""
    memory = Memory(0.9, 0.6)
    shifted = innovations(np.r_[np.zeros(20), np.ones(200)], [memory])[0]
    assert shifted[20] == pytest.approx(1.0)
    assert shifted[-1] == pytest.approx(1 / memory.gain, rel=1e-3)
    spike = np.zeros(60)
    spike[20] = 1e6
    assert np.abs(innovations(spike, [memory])[0][27:]).max() < 0.2
