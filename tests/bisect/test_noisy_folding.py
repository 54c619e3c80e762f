"""Commits that give a neighbour's run, where runs don't repeat themselves: the search is over those that are left."""

import random
import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.bisect.culprit import Answer, result_of
from lossbisect.bisect.events import EventKind
from lossbisect.bisect.known import folded, places_left
from lossbisect.bisect.noisy import Outlook, contradict, look_ahead
from lossbisect.bisect.posterior import Evidence, Reading
from lossbisect.bisect.prune import equal_span
from lossbisect.bisect.types import BisectStep, CommitVerdict, FileChange, Role
from lossbisect.train.reads import Reads
from lossbisect.train.types import Outcome
from tests.bisect.support import GOOD_CURVE, make_plan, make_record
from tests.bisect.test_driver import Bench, noisy, one_change
from tests.bisect.test_folding import folding

SEED = 20261201
_READ, _UNREAD = "megatron/core/model.py", "docs/guide.md"
_READS = Reads(
    opened=frozenset({_READ}), looked_up=frozenset(), missed=frozenset(), listed=frozenset(), handed_on=frozenset()
)
_WORSE = tuple(1.1 * value for value in GOOD_CURVE)


def step_at(index: int, span: tuple[int, int] | None) -> BisectStep:
    """A run that gave something, and the commits that give the same run."""
    record = make_record(f"{index + 1:040x}", Path("run"))
    return BisectStep(
        role=Role.SEARCH, index=index, commit="", record=record, verdict=CommitVerdict.GOOD, reason="", span=span
    )


def changes_of(count: int, touching: Collection[int]) -> list[list[FileChange]]:
    """What each commit changed: what a run reads, or what none does."""
    return [[FileChange(path=_READ if i in touching else _UNREAD, status="modified")] for i in range(count)]


def search(
    count: int,
    touching: Collection[int],
    first_bad: int,
    rng: random.Random,
    *,
    width: float,
    folds: bool,
    jobs: int = 1,
) -> tuple[Outlook, list[int], bool]:
    """Follow a search by scores whose ends are 1 apart: how it ends, what ran, whether the proof is doubted."""
    changes = changes_of(count, touching)
    readings: list[Reading] = []
    steps: list[BisectStep] = []

    def run(index: int) -> None:
        readings.append(Reading(index=index, value=rng.gauss(index >= first_bad, width)))
        span = equal_span(index, changes, _READS)
        steps.append(step_at(index, (span[0], span[-1]) if folds else None))

    for index in (-1, -1, count - 1, count - 1):
        run(index)
    while not (
        outlook := look_ahead(
            count, readings, Evidence.SCORE, confidence=0.95, free=jobs, places=places_left(steps, count)
        )
    ).is_over:
        for index in outlook.wanted:
            run(index)
    is_doubted = contradict(count, readings, Evidence.SCORE, places_left(steps, count))
    return outlook, [reading.index for reading in readings], is_doubted


def drawn(count: int, number: int, rng: random.Random) -> tuple[set[int], int]:
    """So many commits that touch something, and which of them is the change."""
    touching = rng.sample(range(count), number)
    return set(touching), touching[0]


@settings(deadline=None, max_examples=60)
@given(
    count=st.integers(1, 60),
    share=st.floats(0, 1),
    jobs=st.integers(1, 3),
    width=st.sampled_from([0.02, 0.2]),
    seed=st.integers(0, 10**6),
)
def test_the_change_is_named_and_has_run(count: int, share: float, jobs: int, width: float, seed: int) -> None:
    """A change of five noise widths or more is among the candidates, and one that is named has run, as its parent has.

    Nothing that is proven to give its parent's run is ever a candidate.
    """
    rng = random.Random(seed)
    touching, first_bad = drawn(count, max(1, round(share * count)), rng)
    outlook, ran, _ = search(count, touching, first_bad, rng, width=width, folds=True, jobs=jobs)
    assert not outlook.is_unchanged
    assert first_bad in outlook.candidates
    if len(outlook.candidates) == 1:
        assert {first_bad, first_bad - 1} <= set(ran)
        assert outlook.unconfirmed == ()
    known = {index for index in ran for index in equal_span(index, changes_of(count, touching), _READS)[1:]}
    assert known.isdisjoint(outlook.candidates)


@pytest.mark.parametrize(("number", "most"), [(3, 0.8), (16, 0.95), (64, 1.0)])
def test_folding_takes_no_more_runs(number: int, most: float) -> None:
    """Among 64 commits, the fewer touch what runs read, the fewer runs it takes; the proof is hardly ever doubted."""
    print(f"seed {SEED}")  # noqa: T201
    runs, right, doubted = {True: 0, False: 0}, {True: 0, False: 0}, 0
    for trial in range(40):
        touching, first_bad = drawn(64, number, random.Random(f"{SEED} {number} {trial}"))
        for folds in (True, False):
            rng = random.Random(f"{SEED} {trial}")
            outlook, ran, is_doubted = search(64, touching, first_bad, rng, width=0.4, folds=folds)
            doubted += is_doubted
            runs[folds] += len(ran)
            right[folds] += list(outlook.candidates) == [first_bad]
    print(runs, right, doubted)  # noqa: T201
    assert doubted <= 2
    assert runs[True] <= most * runs[False]
    assert right[True] >= 36


def test_runs_that_read_differently_prove_only_what_they_share() -> None:
    """Where one run says that a commit touches it and another doesn't, the commit is left."""
    steps = [step_at(3, (0, 9)), step_at(6, (5, 9))]
    assert places_left(steps, 12) == [0, 5, 10, 11]
    assert places_left([step_at(3, None)], 12) == range(12)


def test_a_parent_that_fails_is_no_confirmation() -> None:
    """Where the culprit's parent can't be run itself, its neighbours' runs name nothing for sure."""
    readings = [Reading(index=index, value=float(index >= 8)) for index in (-1, -1, 3, 3, 8, 8, 15, 15)]
    readings = [replace(each, value=each.value + 0.01 * place) for place, each in enumerate(readings)]
    ask = {"confidence": 0.95, "places": [8]}
    assert look_ahead(16, readings, Evidence.SCORE, **ask).wanted == (7,)  # type: ignore[arg-type]
    outlook = look_ahead(16, readings, Evidence.SCORE, skipped=[7], **ask)  # type: ignore[arg-type]
    assert (outlook.is_over, list(outlook.candidates), outlook.unconfirmed) == (True, [8], (7,))


def test_the_answer_says_how_many_were_folded(tmp_path: Path) -> None:
    """A noisy search of 200 commits of which four matter takes few runs, and its last sentence says what didn't run."""
    bench = folding(Bench(tmp_path, 200, noisy(one_change(121, bad=_WORSE), 1e-4)), [20, 90, 121, 170])
    finding = bench.drive()
    assert (finding.answer, finding.good, finding.bad) == (Answer.FOUND, 120, 121)
    assert {120, 121} <= set(bench.ran)
    assert len(bench.ran) <= 16
    assert any("of " in text and "holds it with" in text for text in bench.texts(EventKind.NARROWED))
    plan = make_plan(tmp_path, bench.commits.good.sha, bench.commits.bad.sha)
    result = result_of(
        finding, bisect_id="1", directory=tmp_path, plan=plan, commits=bench.commits, culprit=None, repository=None
    )
    number = len(folded(finding.steps))
    assert number > 100
    assert result.confidence.endswith(
        f"{number} of 200 commits change nothing that a neighbour's run read: theirs is that run."
    )


@pytest.mark.parametrize("size", [1e-4, 3e-2])
def test_a_run_that_lies_about_its_reads_names_nothing_for_sure(tmp_path: Path, size: float) -> None:
    """A change in a commit that is said to touch nothing is seen in the runs: no other commit is named in its place."""
    bench = folding(Bench(tmp_path, 32, noisy(one_change(16, bad=_WORSE), size)), [24])
    finding = bench.drive()
    assert finding.answer is Answer.UNCONFIRMED
    assert "give different runs" in finding.reason


def test_no_prune_folds_nothing(tmp_path: Path) -> None:
    """Where folding is turned off, the same history takes a whole search, and no word of folding."""
    bench = folding(Bench(tmp_path, 64, noisy(one_change(41, bad=_WORSE), 1e-4)), [41])
    few = folding(Bench(tmp_path / "few", 64, noisy(one_change(41, bad=_WORSE), 1e-4)), [41])
    bench.commits = replace(bench.commits, changes=None)
    assert bench.drive().bad == few.drive().bad == 41
    assert len(few.ran) < len(bench.ran)


def test_a_range_in_which_nothing_matters(tmp_path: Path) -> None:
    """Where no commit changes what the runs read, none is run and none is named, however far apart the ends are."""
    bench = folding(Bench(tmp_path, 64, noisy(one_change(63, bad=_WORSE), 1e-4)), [])
    finding = bench.drive()
    assert finding.answer is Answer.NO_CULPRIT
    assert "No commit of the range changes anything" in finding.reason
    assert set(bench.ran) == {-1, 63}


@settings(deadline=None, max_examples=25)
@given(count=st.integers(2, 30), seed=st.integers(0, 10**6), jobs=st.integers(1, 3))
def test_any_noisy_history_ends_with_the_truth(count: int, seed: int, jobs: int) -> None:
    """Whatever touches something or fails, the change is among the candidates and the search ends."""
    rng = random.Random(seed)
    touching, first_bad = drawn(count, rng.randint(1, count), rng)
    broken = {index for index in range(count - 1) if rng.random() < 0.15}
    touching |= broken | {index + 1 for index in broken}
    script = noisy(one_change(first_bad, bad=_WORSE), 1e-4)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), count, lambda index: Outcome.FAILED if index in broken else script(index))
        finding = folding(bench, touching).drive(jobs=jobs)
    assert finding.answer in (Answer.FOUND, Answer.SEVERAL, Answer.UNCONFIRMED)
    assert finding.good < first_bad <= finding.bad
