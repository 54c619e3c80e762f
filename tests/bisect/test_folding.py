"""Commits that change nothing that a neighbour's run read: they aren't run, and the answer is the same."""

import json
import tempfile
from collections.abc import Collection
from dataclasses import replace
from math import ceil, log2
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.bisect.culprit import Answer
from lossbisect.bisect.known import folded
from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.types import FileChange
from lossbisect.train.types import Outcome, RunRecord
from tests.bisect.support import BAD_CURVE, GOOD_CURVE
from tests.bisect.test_driver import Bench, one_change

_MODEL, _DOCS = "megatron/core/model.py", "docs/guide.md"
_OTHER_CURVE = (10.5, 10.0, 9.0, 8.0)


def with_reads(record: RunRecord, _number: int) -> RunRecord:
    """A run that read the model alone; it says so however it ends."""
    kinds = {"opened": [_MODEL], "looked_up": [], "missed": [], "listed": [], "handed_on": []}
    (record.out / "reads-0-of-1.json").write_text(json.dumps([kinds]), encoding="utf-8")
    return record


def folding(bench: Bench, touching: Collection[int]) -> Bench:
    """The same bench, where these commits change the model and all others the documentation."""
    paths = [_MODEL if index in touching else _DOCS for index in range(len(bench.commits.commits))]
    changes = tuple((FileChange(path=path, status="modified"),) for path in paths)
    bench.commits = replace(bench.commits, changes=changes)
    bench.runner.change = with_reads
    return bench


def test_only_commits_that_touch_something_are_searched(tmp_path: Path) -> None:
    """Among 300 commits of which five change the model, the search takes the runs of five commits."""
    touching = [20, 90, 141, 200, 280]
    bench = folding(Bench(tmp_path, 300, one_change(141)), touching)
    finding = bench.drive()
    assert (finding.answer, finding.good, finding.bad) == (Answer.FOUND, 140, 141)
    assert len(bench.ran) <= 3 + ceil(log2(len(touching) + 1)) + 2
    assert bench.ran[-2:] == [140, 141]
    assert len(folded(finding.steps)) > 200
    assert finding.warnings == ()


def test_without_what_was_read_every_commit_counts(tmp_path: Path) -> None:
    """Runs that don't say what they read fold nothing, whatever the commits change."""
    bench = folding(Bench(tmp_path, 64, one_change(40)), [40])
    bench.runner.change = lambda record, _number: record
    finding = bench.drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 40)
    assert len(bench.ran) == 3 + 6 + 2
    assert finding.warnings == ()


def test_a_parent_that_did_not_run_is_run_to_confirm(tmp_path: Path) -> None:
    """A commit that was folded by mistake, since a run lied about what it read, is found out before it is named."""
    bench = folding(Bench(tmp_path, 32, one_change(16)), [24])
    finding = bench.drive()
    assert finding.answer is Answer.UNCONFIRMED
    assert "differs from its first" in finding.reason


def test_folding_survives_a_stop(tmp_path: Path) -> None:
    """What was folded before an interruption is in the journal: going on takes the same runs as going through."""
    touching = [10, 30, 50, 52, 70, 90]
    whole = folding(Bench(tmp_path / "whole", 100, one_change(52)), touching)
    expected = whole.drive()
    cut = folding(Bench(tmp_path / "cut", 100, one_change(52)), touching)
    cut.kill_after = 3
    try:
        cut.drive()
    except KeyboardInterrupt:
        cut.kill_after = None
    finding = cut.drive()
    assert (finding.answer, finding.bad) == (expected.answer, expected.bad)
    assert cut.ran == whole.ran


def test_every_change_is_found_with_fewer_runs(tmp_path: Path) -> None:
    """Looking for all changes, folded commits count as run too."""
    curves = {0: GOOD_CURVE, 1: _OTHER_CURVE, 2: BAD_CURVE}
    touching = [12, 40, 77, 120, 150]
    bench = folding(Bench(tmp_path, 160, lambda index: curves[(index >= 40) + (index >= 120)]), touching)
    finding = bench.drive(search=SearchOptions(find_all=True))
    assert [change.bad for change in finding.changes] == [40, 120]
    assert len(bench.ran) < 14


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_history_is_answered_as_without_folding(data: st.DataObject) -> None:
    """Whatever commits touch something or can't be tested, the truth is in the answer, and named where it can be."""
    count = data.draw(st.integers(1, 40))
    truth = data.draw(st.integers(0, count - 1))
    touching = data.draw(st.sets(st.integers(0, count - 1))) | {truth}
    # A commit that can't be tested touches something, and so does the one that mends it.
    broken = data.draw(st.sets(st.integers(0, max(0, count - 2)), max_size=5)) - {count - 1}
    touching |= broken | {index + 1 for index in broken}
    script = one_change(truth)
    jobs = data.draw(st.integers(1, 3))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), count, lambda index: Outcome.FAILED if index in broken else script(index))
        finding = folding(bench, touching).drive(jobs=jobs)
    assert finding.answer in (Answer.FOUND, Answer.SEVERAL)
    assert finding.good < truth <= finding.bad
    if finding.answer is Answer.FOUND:
        assert finding.bad == truth
