"""Every change of a range."""

import math
from pathlib import Path

import pytest

from lossbisect.bisect.culprit import Answer
from lossbisect.bisect.options import SearchOptions
from lossbisect.train.types import Outcome
from tests.bisect.support import GOOD_CURVE, Script
from tests.bisect.test_driver import Bench, changed

ALL = SearchOptions(find_all=True)


def stairs(*at: int) -> list[Script]:
    """A curve of its own after each of some commits, for up to a hundred commits; the last one is the good end's."""
    curves: list[Script] = [GOOD_CURVE]
    curves += [tuple(value * (1 + 10.0 ** -(n + 2)) for value in GOOD_CURVE) for n in range(len(at))]
    script: list[Script] = [curves[sum(index >= each for each in at)] for index in range(100)]
    return [*script, GOOD_CURVE]


@pytest.mark.parametrize("jobs", [1, 3])
def test_names_every_change(tmp_path: Path, jobs: int) -> None:
    """Three changes in a hundred commits are all named, each with its own size, in about k log2(N / k) runs."""
    bench = Bench(tmp_path, 100, stairs(11, 50, 93).__getitem__)
    finding = bench.drive(search=ALL, jobs=jobs)
    assert finding.answer is Answer.EVERY_CHANGE
    assert [(change.good, change.bad) for change in finding.changes] == [(10, 11), (49, 50), (92, 93)]
    sizes = [each.judgement.comparison.difference.largest_rel for each in finding.changes if each.judgement]
    assert sizes == pytest.approx([1e-2, 9e-3, 9e-4], rel=0.05)
    assert len(bench.ran) <= 3 + 3 * math.ceil(math.log2(100)) * (1 if jobs == 1 else 2)
    assert finding.warnings == ()


def test_a_change_among_untestable_commits_is_a_group(tmp_path: Path) -> None:
    """Where the neighbours can't run, the change is one of some commits."""
    script = changed(lambda i: stairs(11)[i], i10=Outcome.FAILED, i11=Outcome.FAILED)
    finding = Bench(tmp_path, 20, script).drive(search=ALL)
    assert [(change.good, change.bad) for change in finding.changes] == [(9, 12)]


def test_no_change(tmp_path: Path) -> None:
    """A range whose ends are equal has none, unless probes find one that came and went."""
    there_and_back = lambda i: stairs(11)[11] if 11 <= i < 60 else GOOD_CURVE  # noqa: E731
    assert Bench(tmp_path / "without", 100, there_and_back).drive(search=ALL).answer is Answer.NO_CULPRIT
    finding = Bench(tmp_path / "with", 100, there_and_back).drive(search=SearchOptions(find_all=True, probe=3))
    assert [change.bad for change in finding.changes] == [11, 60]


def test_going_on_repeats_nothing(tmp_path: Path) -> None:
    """Stopped in between, the list is the same and no run is repeated."""
    bench = Bench(tmp_path, 60, stairs(11, 50).__getitem__)
    bench.kill_after = 6
    with pytest.raises(KeyboardInterrupt):
        bench.drive(search=ALL)
    bench.kill_after = None
    assert [change.bad for change in bench.drive().changes] == [11, 50]
    assert len(bench.ran) == len(set(bench.ran)) + 1  # the good end runs twice
