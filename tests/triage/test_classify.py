"""From curves to a kind: pure."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossbisect.triage.classify import Change, Evidence, change_of, distance, kind_of
from lossbisect.triage.tip import is_suspect
from lossbisect.triage.types import Curve, Kind

OLD: Curve = {1: 10.0, 2: 9.0, 3: 8.0, 4: 7.0}
NEW: Curve = {1: 10.0, 2: 9.0, 3: 8.1, 4: 7.1}
LOWER: Curve = {1: 10.0, 2: 9.0, 3: 7.9, 4: 6.9}
MIXED: Curve = {1: 10.0, 2: 9.0, 3: 7.9, 4: 7.1}
BROKEN: Curve = {1: 10.0, 2: 9.0, 3: math.nan, 4: math.nan}
NEARLY: Curve = {1: 10.0, 2: 9.0, 3: 8.001, 4: 7.0}


@pytest.mark.parametrize(
    ("recorded", "reference", "tip", "kind"),
    [
        (OLD, [OLD], [OLD, OLD], Kind.OK),
        (OLD, [OLD], [NEW, NEW], Kind.REGRESSION),
        (OLD, [OLD], [LOWER, LOWER], Kind.IMPROVEMENT),
        (OLD, [OLD], [MIXED, MIXED], Kind.REGRESSION),
        (OLD, [OLD], [BROKEN, BROKEN], Kind.REGRESSION),
        (OLD, [NEW, NEW], [NEW, NEW], Kind.ENVIRONMENT),
        (OLD, [LOWER, LOWER], [NEW, NEW], Kind.REGRESSION),
        (OLD, [OLD, OLD], [OLD, NEARLY], Kind.FLAKY),
        (OLD, [OLD, NEARLY], [NEARLY, OLD], Kind.FLAKY),
        (OLD, [OLD, OLD], [OLD, BROKEN], Kind.FLAKY),
        ({}, [OLD], [NEW, NEW], Kind.REGRESSION),
        (OLD, [], [OLD], Kind.OK),
        (OLD, [], [NEW], Kind.UNDECIDED),
    ],
)
def test_the_kind_of_each_pattern(recorded: Curve, reference: list[Curve], tip: list[Curve], kind: Kind) -> None:
    """Each way in which a record, the reference's and the tip's runs can agree or not has its one name."""
    evidence = Evidence(recorded=recorded, reference=reference, tip=tip, noise_rel=0.0, tolerance=0.0)
    assert kind_of(evidence).kind is kind


def test_a_change_beyond_new_noise_is_still_a_change() -> None:
    """Runs that don't repeat themselves, and all lie far from the reference, aren't excused as flaky."""
    wobbly = {**NEW, 3: 8.1001}
    evidence = Evidence(recorded=OLD, reference=[OLD, OLD], tip=[NEW, wobbly], noise_rel=0.0, tolerance=0.0)
    assert kind_of(evidence).kind is Kind.REGRESSION


def test_a_tolerance_is_no_change() -> None:
    """What the suite calls the same is the same, and what is just above it isn't."""
    assert change_of(OLD, NEARLY, 0.0, 1.3e-4) == Change.SAME
    assert change_of(OLD, NEARLY, 0.0, 1.2e-4) == Change.REAL


def test_between_noise_and_surely_real_nothing_is_claimed() -> None:
    """Twice the known noise is noise, five times isn't, in between is doubtful."""
    apart = distance(OLD, NEARLY).largest_rel
    assert [change_of(OLD, NEARLY, apart / factor, 0.0) for factor in (1.9, 4.0, 5.1)] == [
        Change.SAME,
        Change.DOUBTFUL,
        Change.REAL,
    ]


def _runs(rng: np.random.Generator, level: float, count: int) -> list[Curve]:
    return [{1: 10.0, 2: float(level + 0.001 * each)} for each in rng.standard_normal(count)]


@pytest.mark.parametrize(("shift", "low", "high"), [(0.0, 0.0, 0.05), (0.003, 0.9, 1.0)])
def test_repeats_decide_what_noise_may_hide(shift: float, low: float, high: float) -> None:
    """Three standard deviations, which lie within the noise of a pair: seen at once by four repeats, nine in ten."""
    seed, count, moved = 20261130, 300, 0
    rng = np.random.default_rng(seed)
    for _ in range(count):
        before = [run[2] for run in _runs(rng, 8.0, 36)]
        tip = _runs(rng, 8.0 + shift, 4)
        if not is_suspect(before, tip[0]):
            continue
        evidence = Evidence(
            recorded=_runs(rng, 8.0, 1)[0], reference=_runs(rng, 8.0, 4), tip=tip, noise_rel=0.0005, tolerance=0.0,
            before=before,
        )  # fmt: skip
        moved += kind_of(evidence).kind in (Kind.REGRESSION, Kind.IMPROVEMENT)
    assert low <= moved / count <= high, f"seed {seed}"


_VALUES = st.one_of(st.floats(min_value=0.1, max_value=20), st.just(math.nan))
_CURVES = st.dictionaries(st.integers(1, 6), _VALUES, min_size=1)


@given(recorded=_CURVES, drifted=_CURVES, count=st.integers(2, 4))
def test_the_environment_is_never_blamed_on_a_commit(recorded: Curve, drifted: Curve, count: int) -> None:
    """Whatever today's numbers are: if the reference commit gives the same as the new one, no commit is to blame."""
    evidence = Evidence(
        recorded=recorded, reference=[drifted] * count, tip=[drifted] * count, noise_rel=0.0, tolerance=0.0
    )
    assert kind_of(evidence).kind in (Kind.OK, Kind.ENVIRONMENT)


@given(recorded=_CURVES, now=_CURVES, tip=_CURVES)
def test_a_commit_is_never_blamed_on_the_environment(recorded: Curve, now: Curve, tip: Curve) -> None:
    """If two commits differ in one environment, repeatably, that is never called the environment nor ok."""
    evidence = Evidence(recorded=recorded, reference=[now, now], tip=[tip, tip], noise_rel=0.0, tolerance=0.0)
    is_same = distance(now, tip).since is None
    assert (kind_of(evidence).kind in (Kind.REGRESSION, Kind.IMPROVEMENT)) == (not is_same)
