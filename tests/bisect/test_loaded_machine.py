"""Timing on a machine that others use: by simulation, never a wrong name."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.types import Role
from lossbisect.train.types import RunRecord
from tests.bisect.support import GOOD_CURVE
from tests.bisect.test_driver import Bench, index_of
from tests.bisect.test_figure_hunt import console

COUNT = 12
SEEDS = range(1, 6)
type Load = Callable[[random.Random], Iterator[float]]
"""By what factor each run is slowed by what else the machine does."""


def stretches(chance: random.Random) -> Iterator[float]:
    """Somebody's job comes, stays for some five runs, and goes."""
    load = 0.0
    while True:
        if chance.random() < 0.2:
            load = chance.choice([0.0, 0.0, 0.15, 0.3])
        yield 1 + load


def bursts(chance: random.Random) -> Iterator[float]:
    """One run in five is slowed, now and then by far."""
    while True:
        yield 1 + (chance.random() < 0.2) * chance.expovariate(1 / 0.3)


def drift(chance: random.Random) -> Iterator[float]:
    """The machine gets slower and faster by and by."""
    load = 1.0
    while True:
        load *= 1 + chance.gauss(0, 0.03)
        yield load


def hunted(folder: Path, load: Load, *, slower: float, seed: int) -> tuple[Finding, int]:
    """What a hunt for a slowdown says, and the commit that brought it."""
    chance = random.Random(seed)
    at, factors = chance.randrange(COUNT), load(chance)
    bench = Bench(folder, COUNT, lambda _: GOOD_CURVE)

    def change(record: RunRecord, _number: int) -> RunRecord:
        is_slower = index_of(record.spec.sources.mcore_commit or "") >= at
        base = 100.0 * (slower if is_slower else 1.0) * next(factors) * (1 + chance.gauss(0, 0.02))
        record.console.write_text(console([5000.0, 900.0, *([base] * 4)]), encoding="utf-8")
        return record

    bench.runner.change = change
    return bench.drive(search=SearchOptions(regress=Regress.THROUGHPUT, revert=False)), at


@pytest.mark.parametrize("load", [stretches, bursts, drift])
def test_a_slowdown_is_named_right_or_left_open(tmp_path: Path, load: Load) -> None:
    """A slowdown of 20 % is never put down to another commit, and mostly to the right one."""
    counts: Counter[Answer] = Counter()
    for seed in SEEDS:
        finding, at = hunted(tmp_path / str(seed), load, slower=1.2, seed=seed)
        counts[finding.answer] += 1
        told = f"{load.__name__}, seed {seed}: {finding.reason}"
        assert finding.answer is not Answer.FOUND or finding.bad == at, told
        assert finding.answer is not Answer.SEVERAL or finding.good < at <= finding.bad, told
    assert counts[Answer.FOUND] >= len(SEEDS) / 2, f"{load.__name__}: {counts}"


@pytest.mark.parametrize("load", [stretches, bursts, drift])
def test_nobody_is_blamed_where_nothing_got_slower(tmp_path: Path, load: Load) -> None:
    """Load alone is no slowdown: no commit is named, and candidates neither."""
    for seed in SEEDS:
        finding, _ = hunted(tmp_path / str(seed), load, slower=1.0, seed=seed)
        told = f"{load.__name__}, seed {seed}: {finding.reason}"
        assert finding.answer in (Answer.NO_CULPRIT, Answer.UNDECIDED, Answer.UNCONFIRMED), told


def test_the_answer_is_timed_in_turn(tmp_path: Path) -> None:
    """The commit and its parent run three times each, one right after the other, and the search rests on none of it."""
    finding, at = hunted(tmp_path, lambda _: iter(lambda: 1.0, None), slower=1.2, seed=1)
    assert (finding.answer, finding.bad) == (Answer.FOUND, at)
    order = [step.role for step in finding.steps][-6:]
    one, other = Role.PARENT_AGAIN, Role.CULPRIT_AGAIN
    assert order == [one, other, other, one, one, other]
