"""The posterior and the search under noise, as arithmetic."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.bisect.noisy import Outlook, look_ahead
from lossbisect.bisect.posterior import _SEPARATION_PRIOR, Evidence, Reading, believe

SEED = 20260822


def search(
    count: int, first_bad: int, evidence: Evidence, width: float, rng: random.Random, *, jobs: int = 1
) -> tuple[Outlook, int]:
    """Follow a search; ``width`` is the error rate of verdicts, or the noise of scores whose ends are 1 apart."""
    readings: list[Reading] = []

    def run(index: int) -> None:
        is_bad = index >= first_bad
        value = float(is_bad ^ (rng.random() < width)) if evidence is Evidence.VERDICT else rng.gauss(is_bad, width)
        readings.append(Reading(index=index, value=value))

    for index in (-1, -1, count - 1, count - 1):
        run(index)
    while not (outlook := look_ahead(count, readings, evidence, confidence=0.95, free=jobs)).is_over:
        for index in outlook.wanted:
            run(index)
    return outlook, len(readings)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 500), st.lists(st.tuples(st.integers(-1, 499), st.floats(-2, 3)), min_size=1, max_size=30))
def test_masses_are_probabilities(count: int, runs: list[tuple[int, float]]) -> None:
    """Whatever was read, the segments cover all commits and "no change" once, and their masses sum to 1."""
    readings = [Reading(index=min(index, count - 1), value=value) for index, value in runs]
    for evidence in Evidence:
        belief = believe(count, readings, evidence)
        assert belief.segments[0].start == 0
        assert belief.segments[-1].start == count
        assert all(a.stop == b.start for a, b in zip(belief.segments, belief.segments[1:], strict=False))
        assert sum(segment.mass for segment in belief.segments) == pytest.approx(1)


@pytest.mark.parametrize(("evidence", "width"), [(Evidence.VERDICT, 0.1), (Evidence.SCORE, 0.3)])
@pytest.mark.parametrize("jobs", [1, 3])
def test_names_the_change_under_noise(evidence: Evidence, width: float, jobs: int) -> None:
    """At most one in ten of forty noisy searches names a wrong commit, and none of them runs for ever."""
    print(f"seed {SEED}")  # noqa: T201
    rng = random.Random(SEED)
    right, runs = 0, 0
    for _ in range(40):
        first_bad = rng.randrange(64)
        outlook, number = search(64, first_bad, evidence, width, rng, jobs=jobs)
        right += outlook.candidates == range(first_bad, first_bad + 1)
        runs += number
    assert right >= 36
    assert runs / 40 <= 32


def test_says_that_nothing_has_changed() -> None:
    """Where both ends have one distribution, one in twenty at most names a commit, after twelve runs in the mean."""
    print(f"seed {SEED}")  # noqa: T201
    rng = random.Random(SEED)
    found = [search(64, 64, Evidence.SCORE, 0.3, rng) for _ in range(100)]
    assert sum(outlook.is_unchanged for outlook, _ in found) >= 95
    assert sum(number for _, number in found) / 100 <= 12


def test_a_change_of_two_widths_is_seldom_missed() -> None:
    """Ending soon where nothing has changed costs no more than one in twenty changes of two noise widths."""
    print(f"seed {SEED}")  # noqa: T201
    rng = random.Random(SEED)
    found = [search(16, rng.randrange(16), Evidence.SCORE, 0.5, rng)[0] for _ in range(120)]
    assert sum(outlook.is_unchanged for outlook in found) <= 6


@pytest.mark.parametrize("values", [[0.0, 0.3, 2.0, 2.4], [0.1, -0.4, 0.5, 1.0, 0.2, 0.9], [0.0, 0.4, 0.3, 0.1]])
def test_the_closed_form_is_the_integral(values: list[float]) -> None:
    """The chance of no change is what integrating Student's t, central and not, over the distance's prior gives."""
    import numpy as np
    from scipy import stats

    half, scale = len(values) // 2, _SEPARATION_PRIOR
    good, bad = values[:half], values[half:]
    t, freedom = stats.ttest_ind(bad, good).statistic, len(values) - 2
    distances = np.linspace(0.01, 20, 500)
    prior = 2 * distances**2 / scale * stats.norm.pdf(distances, 0, scale**0.5)
    likelihood = stats.nct.pdf(t, freedom, distances * (half / 2) ** 0.5) / stats.t.pdf(t, freedom)
    factor = np.trapezoid(prior * likelihood, distances)
    readings = [Reading(index=-1, value=value) for value in good] + [Reading(index=9, value=value) for value in bad]
    belief = believe(10, readings, Evidence.SCORE, no_change_prior=0.5)
    assert belief.no_change == pytest.approx(1 / (1 + factor), rel=0.05)


def test_verdicts_ask_for_three_runs_of_each_end() -> None:
    """A verdict is one bit: how often it is wrong is asked of the ends before a commit in between is run."""
    readings = [Reading(index=index, value=float(index > 0)) for index in (-1, -1, 9, 9)]
    assert sorted(look_ahead(10, readings, Evidence.VERDICT, confidence=0.95, free=3).wanted) == [-1, 9]


def test_scores_the_wrong_way_round_speak_for_no_change() -> None:
    """The bad end's scores are the larger ones by definition: smaller ones are noise."""
    up = [Reading(index=i, value=v) for i, v in ((-1, 0.0), (-1, 0.1), (-1, 0.05), (9, 1.0), (9, 1.1), (9, 1.05))]
    down = [Reading(index=each.index, value=-each.value) for each in up]
    assert believe(10, up, Evidence.SCORE).no_change < 0.01
    assert believe(10, down, Evidence.SCORE).no_change > 0.5


def test_untestable_commits_leave_candidates() -> None:
    """A change among commits that can't run is named as a group that holds it."""
    rng = random.Random(SEED)
    skipped = set(range(20, 30))
    ends = (-1, -1, -1, 63, 63, 63)
    readings = [Reading(index=index, value=rng.gauss(index >= 25, 0.05)) for index in ends]
    tried: set[int] = set()
    while not (outlook := look_ahead(64, readings, Evidence.SCORE, confidence=0.95, skipped=tried)).is_over:
        for index in outlook.wanted:
            if index in skipped:
                tried.add(index)
            else:
                readings.append(Reading(index=index, value=rng.gauss(index >= 25, 0.05)))
    assert 25 in outlook.candidates
    assert len(outlook.candidates) > 1


def test_a_decision_takes_a_moment() -> None:
    """With sixty readings among a thousand commits and three slots a decision takes under 50 ms."""
    rng = random.Random(SEED)
    readings = [Reading(index=rng.randrange(-1, 1000), value=rng.gauss(0, 1)) for _ in range(50)]
    readings += [Reading(index=index, value=rng.gauss(index > 0, 0.2)) for index in (-1, 999) for _ in range(6)]
    durations = []
    for _ in range(5):
        started = time.perf_counter()
        look_ahead(1000, readings, Evidence.SCORE, confidence=0.95, free=1, running=[500, 600])
        durations.append(time.perf_counter() - started)
    assert min(durations) < 0.05
