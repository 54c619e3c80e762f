"""The loop, with scripted runs on made commits: no git, no training."""

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.driver import Event, EventKind, drive
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.state import Journal
from lossbisect.bisect.types import CommitInfo, CommitRange, CommitVerdict, Role
from lossbisect.errors import EndpointError, RunCancelledError, StateError
from lossbisect.train.types import Outcome, RunRecord
from tests.bisect.support import BAD_CURVE, GOOD_CURVE, Script, ScriptedRunner, make_plan

LONG_CURVE = tuple(10.5 - 0.125 * i for i in range(12))


def make_commit(index: int) -> CommitInfo:
    """The commit at an index; its SHA holds the index."""
    return CommitInfo(
        sha=f"{index + 1:040x}",
        parents=(f"{index:040x}",),
        author="Ada",
        email="ada@example.com",
        date="2026-08-22T15:22:22+00:00",
        subject=f"Commit {index}",
        pull_request=None,
    )


def index_of(sha: str) -> int:
    """The index that a made SHA holds."""
    return int(sha, 16) - 1


class Bench:
    """A range of made commits with a script, and what happens when it is searched."""

    def __init__(self, folder: Path, count: int, script: Mapping[int, Script] | Callable[[int], Script]) -> None:
        self.commits = CommitRange(good=make_commit(-1), commits=tuple(make_commit(i) for i in range(count)))
        look = script if callable(script) else script.__getitem__
        self.runner = ScriptedRunner(lambda sha: look(index_of(sha)))
        self.folder = folder
        self.events: list[Event] = []
        self.bisect_id: str | None = None
        self.kill_after: int | None = None
        self.lost = 0
        self.kept: Sequence[Sequence[int]] = ()

    def drive(self, *, tolerance: float | None = None, jobs: int = 1, search: SearchOptions | None = None) -> Finding:
        """Search the range; a second call goes on with the same journal."""
        if self.bisect_id is None:
            plan = make_plan(self.folder, self.commits.good.sha, self.commits.bad.sha, tolerance=tolerance)
            plan = replace(plan, search=search or SearchOptions(revert=False))
            journal = Journal.create(self.folder, plan)
            self.bisect_id = journal.id
        else:
            journal = Journal.open(self.folder, self.bisect_id)
        with journal:
            before = list(journal.steps)
            finding = drive(self.commits, journal, self.runner, on_event=self._on_event, jobs=jobs, kept=self.kept)
            self.lost += sum(step not in finding.steps for step in before)
            return finding

    def _on_event(self, event: Event) -> None:
        """Keep the event, or die as Ctrl-C does after so many finished runs."""
        self.events.append(event)
        finished = sum(each.kind is EventKind.RUN_FINISHED for each in self.events)
        if self.kill_after is not None and finished > self.kill_after and event.kind is EventKind.RUN_FINISHED:
            raise KeyboardInterrupt

    @property
    def ran(self) -> list[int]:
        """Indices of the runs, in order."""
        return [index_of(sha) for sha in self.runner.ran]

    def texts(self, kind: EventKind) -> list[str]:
        """Progress messages of a kind."""
        return [event.text for event in self.events if event.kind is kind]


def one_change(at: int, good: Script = GOOD_CURVE, bad: Script = BAD_CURVE) -> Callable[[int], Script]:
    """A history with one change."""
    return lambda index: bad if index >= at else good


def changed(script: Callable[[int], Script], **others: Script) -> Callable[[int], Script]:
    """A script with other runs at some indices: ``i3=...``."""
    return lambda index: others.get(f"i{index}", script(index))


@pytest.mark.parametrize("at", range(8))
def test_names_the_first_bad_commit(tmp_path: Path, at: int) -> None:
    """Whichever commit changed the curve is named, and it and its parent have run again."""
    bench = Bench(tmp_path, 8, one_change(at))
    finding = bench.drive()
    assert (finding.answer, finding.bad, finding.good) == (Answer.FOUND, at, at - 1)
    assert bench.ran[:3] == [-1, 7, -1]
    assert bench.ran[-2:] == [at - 1, at]
    assert finding.judgement is not None
    assert finding.judgement.comparison.difference.first_difference == 3
    assert finding.warnings == ()


def test_costs_no_more_runs_than_needed(tmp_path: Path) -> None:
    """Ten commits take two runs of the good end, one of the bad end, four steps and two confirmations at most."""
    costs = []
    for at in range(10):
        bench = Bench(tmp_path / str(at), 10, one_change(at))
        bench.drive()
        costs.append(len(bench.ran))
    assert max(costs) <= 3 + 4 + 2


def test_ends_with_the_same_curve_have_no_culprit(tmp_path: Path) -> None:
    """Without a difference between the ends nothing is searched and no commit is named."""
    bench = Bench(tmp_path, 8, lambda _: GOOD_CURVE)
    finding = bench.drive()
    assert finding.answer is Answer.NO_CULPRIT
    assert bench.ran == [-1, 7, -1]


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.VOID])
def test_a_run_that_does_not_finish_is_never_bad(tmp_path: Path, outcome: Outcome) -> None:
    """A commit whose run fails is skipped with its reason, and the culprit is still found around it."""
    bench = Bench(tmp_path, 8, changed(one_change(6), i3=outcome))
    finding = bench.drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 6)
    step = next(step for step in finding.steps if step.index == 3)
    assert step.verdict is CommitVerdict.SKIP
    assert step.reason.startswith(outcome.value)


def test_a_culprit_behind_untestable_commits_leaves_candidates(tmp_path: Path) -> None:
    """Where the change hides among commits that can't run, all of them are named and none is accused."""
    bench = Bench(tmp_path, 8, changed(one_change(4), i3=Outcome.FAILED, i4=Outcome.FAILED))
    finding = bench.drive()
    assert finding.answer is Answer.SEVERAL
    assert range(finding.good + 1, finding.bad + 1) == range(3, 6)


def wrong_commit(record: RunRecord) -> RunRecord:
    """The run says that it used another commit."""
    assert record.provenance is not None
    return replace(record, provenance=replace(record.provenance, mcore_commit="f" * 40))


def dirty_tree(record: RunRecord) -> RunRecord:
    """The run says that its tree was changed."""
    assert record.provenance is not None
    return replace(record, provenance=replace(record.provenance, is_clean=False))


def silent(record: RunRecord) -> RunRecord:
    """The run doesn't say what it used."""
    return replace(record, provenance=None)


@pytest.mark.parametrize("change", [wrong_commit, dirty_tree, silent])
def test_a_run_of_other_code_is_void(tmp_path: Path, change: Callable[[RunRecord], RunRecord]) -> None:
    """A finished run whose own word on its code isn't the commit asked for is skipped, whatever its curve."""
    bench = Bench(tmp_path, 8, one_change(6))
    bench.runner.change = lambda record, number: change(record) if number == 4 else record
    finding = bench.drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 6)
    void = [step for step in finding.steps if step.record.outcome is Outcome.VOID]
    assert [step.verdict for step in void] == [CommitVerdict.SKIP]


def test_missing_iterations_are_skipped(tmp_path: Path) -> None:
    """A run that ends early with exit code 0 says nothing about the loss."""
    bench = Bench(tmp_path, 8, changed(one_change(6), i3=BAD_CURVE[:2]))
    finding = bench.drive()
    assert finding.bad == 6
    assert next(step for step in finding.steps if step.index == 3).verdict is CommitVerdict.SKIP


def test_nan_is_bad(tmp_path: Path) -> None:
    """A loss that goes NaN where the good end has a number is a change of the loss."""
    bench = Bench(tmp_path, 8, one_change(5, bad=(10.5, 10.25, math.nan, math.nan)))
    finding = bench.drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 5)
    assert "nan at iteration 3" in finding.reason


@pytest.mark.parametrize("which", [-1, 7])
def test_an_end_that_fails_stops_the_search(tmp_path: Path, which: int) -> None:
    """A crash at an end is an error of ours that shows the log's tail, never a verdict."""
    bench = Bench(tmp_path, 8, changed(one_change(5), **{f"i{which}": Outcome.FAILED}))
    with pytest.raises(EndpointError, match="ImportError") as caught:
        bench.drive()
    assert ("crash" in str(caught.value)) == (which == 7)
    assert "console.log" in str(caught.value)


def test_an_end_that_failed_is_run_again_on_resume(tmp_path: Path) -> None:
    """After the environment is repaired, going on tries the end anew and keeps what had finished."""
    broken = {7: True}
    bench = Bench(tmp_path, 8, lambda i: Outcome.FAILED if broken.get(i) else one_change(5)(i))
    with pytest.raises(EndpointError):
        bench.drive()
    broken.clear()
    assert bench.drive().bad == 5
    assert bench.ran[:4] == [-1, 7, 7, -1]


def noisy(script: Callable[[int], Script], size: float) -> Callable[[int], Script]:
    """A script whose runs don't repeat themselves: each third run is off by ``size``, relative."""
    count = 0

    def run(index: int) -> Script:
        nonlocal count
        count += 1
        scripted = script(index)
        assert not isinstance(scripted, Outcome)
        return [value * (1 + size * (count % 3 - 1)) for value in scripted]

    return run


def test_noise_of_the_good_end_is_not_a_change(tmp_path: Path) -> None:
    """If the good end differs from itself, differences of that size are noise and larger ones are found."""
    bench = Bench(tmp_path, 8, noisy(one_change(5, bad=tuple(1.1 * v for v in GOOD_CURVE)), 1e-6))
    finding = bench.drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 5)
    assert finding.noise is not None
    assert finding.noise.source == "repeats"
    assert any("not determined" in text for text in bench.texts(EventKind.NOTE))


def test_noisy_ends_without_a_difference_have_no_culprit(tmp_path: Path) -> None:
    """Where runs don't repeat themselves and the ends don't differ by more than that, no commit is named."""
    answers = []
    for seed in range(5):
        rng = random.Random(seed)

        def script(_: int, rng: random.Random = rng) -> Script:
            return [value * (1 + rng.gauss(0, 1e-4)) for value in LONG_CURVE]

        bench = Bench(tmp_path / str(seed), 32, script)
        answers.append((bench.drive().answer, len(bench.ran) <= 14))
    assert answers.count((Answer.NO_CULPRIT, True)) >= 4


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_change_of_a_few_noise_widths_is_found(tmp_path: Path, jobs: int) -> None:
    """A change of six noise widths over the whole curve is named with its probability, in about twice log2 runs."""
    found = 0
    for seed in range(5):
        rng = random.Random(seed)

        def script(index: int, rng: random.Random = rng) -> Script:
            shift = 6e-4 / len(LONG_CURVE) ** 0.5 if index >= 20 else 0.0
            return [value * (1 + shift + rng.gauss(0, 1e-4)) for value in LONG_CURVE]

        bench = Bench(tmp_path / str(seed), 64, script)
        finding = bench.drive(jobs=jobs)
        assert finding.probability is not None
        found += (finding.answer, finding.bad) == (Answer.FOUND, 20)
        assert len(bench.ran) <= 40
    assert found >= 4


def test_a_tolerance_that_the_good_end_breaks_is_refused(tmp_path: Path) -> None:
    """A tolerance below the set-up's own noise would accuse at random."""
    curves = iter([GOOD_CURVE, [v * 1.01 for v in GOOD_CURVE], BAD_CURVE])
    with pytest.raises(EndpointError, match="doesn't repeat itself within the tolerance"):
        Bench(tmp_path, 8, lambda _: next(curves)).drive(tolerance=1e-3)


def test_a_tolerance_hides_smaller_changes(tmp_path: Path) -> None:
    """The bad end's change is named, not a smaller one before it, unless every digit was said to count."""

    def script(index: int) -> Sequence[float]:
        size = 0.0 if index < 2 else 1e-6 if index < 6 else 1e-2
        return [value * (1 + size) for value in GOOD_CURVE]

    auto = Bench(tmp_path / "auto", 8, script).drive()
    assert auto.bad == 6
    assert "smaller change" in auto.warnings[0]
    assert Bench(tmp_path / "exact", 8, script).drive(tolerance=0.0).bad == 2
    assert Bench(tmp_path / "rtol", 8, script).drive(tolerance=1e-4).bad == 6


@pytest.mark.parametrize("index", [4, 5])
def test_a_commit_that_does_not_repeat_itself_is_not_confirmed(tmp_path: Path, index: int) -> None:
    """If the culprit or its parent gives another curve the second time, the name is given as unconfirmed."""
    seen: list[int] = []

    def script(i: int) -> Script:
        seen.append(i)
        return (10.5, 10.25, 9.0, 8.0) if i == index and seen.count(i) == 2 else one_change(5)(i)

    finding = Bench(tmp_path, 8, script).drive()
    assert (finding.answer, finding.bad) == (Answer.UNCONFIRMED, 5)
    assert "second run" in finding.reason


def test_another_break_is_not_mixed_in(tmp_path: Path) -> None:
    """Commits that match neither end aren't bad: the change that leads to the bad end is named, and the other one."""
    third = (10.5, 10.0, 9.0, 8.0)
    finding = Bench(tmp_path, 16, lambda i: GOOD_CURVE if i < 3 else third if i < 9 else BAD_CURVE).drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 9)
    assert f"Before it, {make_commit(3).short}" in finding.reason
    assert any("neither end" in warning for warning in finding.warnings)
    assert CommitVerdict.OTHER in {step.verdict for step in finding.steps}


def test_a_break_that_may_hide_another_leaves_candidates(tmp_path: Path) -> None:
    """While the curve is NaN nobody sees what else changes: every commit from there on stays a candidate."""
    hidden = (10.5, 10.25, math.nan, math.nan)
    finding = Bench(tmp_path, 16, lambda i: GOOD_CURVE if i < 4 else hidden if i < 12 else BAD_CURVE).drive()
    assert finding.answer is Answer.SEVERAL
    assert range(finding.good + 1, finding.bad + 1) == range(4, 13)


def test_the_change_that_leads_to_the_bad_end_is_named(tmp_path: Path) -> None:
    """Added, reverted, added again: the last one is named, and that it was there before is said."""
    bench = Bench(tmp_path, 32, lambda i: BAD_CURVE if 8 <= i < 20 or i >= 25 else GOOD_CURVE)
    reverted = replace(bench.commits.commits[20], subject='Revert "Commit 8"')
    bench.commits = replace(bench.commits, commits=(*bench.commits.commits[:20], reverted, *bench.commits.commits[21:]))
    finding = bench.drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 25)
    assert any("was there before" in warning for warning in finding.warnings)


def test_a_change_that_came_back_is_seen_by_probes(tmp_path: Path) -> None:
    """Equal ends with another curve in between: with probes the change is named, without them there is none."""
    script = lambda i: BAD_CURVE if 8 <= i < 20 else GOOD_CURVE  # noqa: E731
    assert Bench(tmp_path / "without", 32, script).drive().answer is Answer.NO_CULPRIT
    finding = Bench(tmp_path / "with", 32, script).drive(search=SearchOptions(probe=3))
    assert (finding.answer, finding.bad) == (Answer.FOUND, 8)
    assert any("taken back" in warning for warning in finding.warnings)


def test_a_failure_that_does_not_repeat_is_no_skip(tmp_path: Path) -> None:
    """A commit that fails once and runs the next time is judged by its run, and called undetermined."""
    seen: list[int] = []

    def script(i: int) -> Script:
        seen.append(i)
        return Outcome.FAILED if i == 3 and seen.count(3) == 1 else one_change(6)(i)

    finding = Bench(tmp_path, 8, script).drive()
    assert finding.bad == 6
    assert seen.count(3) == 2
    assert any("isn't determined" in warning for warning in finding.warnings)


def test_a_nan_is_hunted_whatever_else_changes(tmp_path: Path) -> None:
    """With --regress nan any finite curve is good."""
    broken = (10.5, 10.25, math.nan, math.nan)
    script = lambda i: GOOD_CURVE if i < 2 else BAD_CURVE if i < 6 else broken  # noqa: E731
    finding = Bench(tmp_path, 8, script).drive(search=SearchOptions(regress=Regress.NAN))
    assert (finding.answer, finding.bad) == (Answer.FOUND, 6)


def test_small_effects_can_be_left_out(tmp_path: Path) -> None:
    """Below --min-effect the ends count as equal."""
    small = tuple(value * (1 + 1e-6) for value in GOOD_CURVE)
    bench = Bench(tmp_path, 8, one_change(5, bad=small))
    assert bench.drive(search=SearchOptions(min_effect=1e-5)).answer is Answer.NO_CULPRIT


@pytest.mark.parametrize("jobs", [2, 3, 7])
def test_several_runs_at_once_take_fewer_rounds(tmp_path: Path, jobs: int) -> None:
    """With more slots the same commit is named, after more runs but in fewer rounds."""
    for at in range(0, 40, 7):
        bench = Bench(tmp_path / str(at), 40, one_change(at))
        finding = bench.drive(jobs=jobs)
        assert (finding.answer, finding.bad) == (Answer.FOUND, at)
        assert len(bench.ran) <= 3 + jobs * math.ceil(math.log(40, jobs + 1)) + jobs + 2


def test_a_run_that_is_no_longer_needed_leaves_no_trace(tmp_path: Path) -> None:
    """A run that is ended because another one made it needless is no skip, however it ended."""
    bench = Bench(tmp_path, 60, one_change(50))
    slow = make_commit(14).sha

    def drop(record: RunRecord, _: int) -> RunRecord:
        if record.spec.sources.mcore_commit != slow:
            return record
        stopped = bench.runner.stops[slow]
        with suppress(RunCancelledError):
            while not stopped():
                time.sleep(1e-3)
        return replace(record, outcome=Outcome.VOID, reason="it never said which code it used")

    bench.runner.change = drop
    finding = bench.drive(jobs=2)
    assert (finding.answer, finding.bad) == (Answer.FOUND, 50)
    assert slow in bench.runner.ran
    assert CommitVerdict.SKIP not in {step.verdict for step in finding.steps}


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, int, frozenset[int]]:
    """A number of commits, the first bad one, and commits that can't be tested."""
    count = draw(st.integers(1, 40))
    inner = st.integers(0, count - 2) if count > 1 else st.nothing()
    return count, draw(st.integers(0, count - 1)), draw(st.frozensets(inner)) if count > 1 else frozenset()


@settings(max_examples=40, deadline=None)
@given(histories(), st.integers(1, 4), st.integers(0, 30), st.integers(0, 2**32))
def test_any_history_any_order_any_kill(
    tmp_path_factory: pytest.TempPathFactory,
    history: tuple[int, int, frozenset[int]],
    jobs: int,
    kill_after: int,
    seed: int,
) -> None:
    """One change, any skips, any order, a kill at any run: the truth is in the answer, and no finished run is lost."""
    count, first_bad, skips = history
    bench = Bench(
        tmp_path_factory.mktemp("any"), count, lambda i: Outcome.FAILED if i in skips else one_change(first_bad)(i)
    )
    rng = random.Random(seed)
    bench.runner.wait = lambda: time.sleep(rng.choice((0, 0, 1e-4, 2e-3)))
    bench.kill_after = kill_after
    try:
        finding = bench.drive(jobs=jobs)
    except KeyboardInterrupt:
        bench.kill_after = None
        finding = bench.drive(jobs=jobs)
    assert first_bad in range(finding.good + 1, finding.bad + 1)
    if finding.answer is Answer.FOUND:
        assert finding.bad == first_bad
    judged = [step for step in finding.steps if step.record.outcome is Outcome.FINISHED]
    runs = [(step.role, step.index) for step in judged if step.role is not Role.CANARY]
    assert len(runs) == len(set(runs))
    assert bench.lost == 0


def test_a_broken_machine_is_not_a_range_of_untestable_commits(tmp_path: Path) -> None:
    """When everything fails, the good end is tried; if it fails too, the skips are taken back."""
    broken: list[bool] = []
    bench = Bench(tmp_path, 32, lambda i: Outcome.FAILED if broken else one_change(20)(i))

    def break_down(record: RunRecord, number: int) -> RunRecord:
        if number == 4:
            broken.append(True)
        return record

    bench.runner.change = break_down
    with pytest.raises(EndpointError, match="not the commits"):
        bench.drive()
    assert bench.ran[-1] == -1
    broken.clear()
    bench.runner.change = lambda record, _: record
    finding = bench.drive()
    assert (finding.answer, finding.bad) == (Answer.FOUND, 20)
    assert not [step for step in finding.steps if step.role is Role.SEARCH and step.verdict is CommitVerdict.SKIP]


def test_runs_of_two_environments_are_not_compared(tmp_path: Path) -> None:
    """If torch was upgraded before going on, the next run is refused instead of being judged against the old ones."""
    bench = Bench(tmp_path, 8, one_change(5))

    def upgraded(record: RunRecord, number: int) -> RunRecord:
        assert record.provenance is not None
        torch = "2.10.0" if number >= 5 else record.provenance.torch
        return replace(record, provenance=replace(record.provenance, torch=torch))

    bench.runner.change = upgraded
    with pytest.raises(StateError, match=r"torch 2\.10\.0"):
        bench.drive()


def test_the_good_end_is_confirmed_too(tmp_path: Path) -> None:
    """If the parent is the good end it is run once more at the end, so that drift in between is seen."""
    seen: list[int] = []

    def script(i: int) -> Script:
        seen.append(i)
        return (10.5, 10.25, 9.0, 8.0) if i == -1 and seen.count(i) == 3 else one_change(0)(i)

    assert Bench(tmp_path, 4, script).drive().answer is Answer.UNCONFIRMED


def test_a_finished_bisect_is_not_run_again(tmp_path: Path) -> None:
    """Going on with a finished bisect gives the same answer without a run."""
    bench = Bench(tmp_path, 8, one_change(5))
    first = bench.drive()
    count = len(bench.ran)
    assert bench.drive().reason == first.reason
    assert len(bench.ran) == count


def test_progress_says_what_is_left(tmp_path: Path) -> None:
    """Each step says how the range shrank and about how many runs are left."""
    bench = Bench(tmp_path, 31, one_change(5))
    bench.drive()
    first = bench.texts(EventKind.NARROWED)[0]
    good, bad, mid = (make_commit(i).short for i in (-1, 30, 14))
    assert (
        first
        == f"Narrowed from [{good}, {bad}] (31 commits) to [{good}, {mid}] (15), about 4 runs left and 2 to confirm"
    )
    assert bench.texts(EventKind.LINE)
