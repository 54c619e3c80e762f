"""Crashes, and commits that don't repeat themselves: scripted runs on made commits."""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.bisect.culprit import Answer
from lossbisect.bisect.hunts import refuse_unfit
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.scope import Scope, Searched, Stage, StageKind
from lossbisect.bisect.signs import failure_sign, weigh_crash
from lossbisect.bisect.types import BisectPlan, CommitVerdict, Role
from lossbisect.cause import Cause
from lossbisect.errors import EndpointError, LossbisectError
from lossbisect.train.executors import ExecutorOptions
from lossbisect.train.types import Outcome, RunRecord
from tests.bisect.support import BAD_CURVE, GOOD_CURVE, Script, make_plan, make_record
from tests.bisect.test_driver import Bench, index_of

CRASH = SearchOptions(regress=Regress.CRASH)
REPEAT = SearchOptions(regress=Regress.REPEATABILITY)
FASTER = SearchOptions(regress=Regress.THROUGHPUT)
SHAPES = 'Traceback (most recent call last):\n  File "x.py", line {n}, in f\nRuntimeError: size {n} at /a/{n}/b.py\n'
KEY = "Traceback (most recent call last):\n  File \"y.py\", line 1, in g\nKeyError: 'moe'\n"
NCCL = "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1, ncclRemoteError\n"


def failing(bench: Bench, text: Callable[[int], str | None], cause: Cause = Cause.OWN) -> Bench:
    """The same bench, where commits with a text fail with it."""

    def change(record: RunRecord, number: int) -> RunRecord:
        said = text(index_of(record.spec.sources.mcore_commit or ""))
        if said is None:
            return record
        record.console.write_text(said.replace("{n}", str(number)), encoding="utf-8")
        reason = said.strip().splitlines()[-1]
        return replace(record, outcome=Outcome.FAILED, reason=reason, exit_code=1, cause=cause)

    bench.runner.change = change
    return bench


@pytest.mark.parametrize("at", range(8))
def test_names_the_first_commit_that_crashes(tmp_path: Path, at: int) -> None:
    """A crash like the bad end's is bad, though numbers and paths in it differ; it and its parent run again."""
    bench = failing(Bench(tmp_path, 8, lambda _: GOOD_CURVE), lambda i: SHAPES if i >= at else None)
    finding = bench.drive(search=replace(CRASH, revert=False))
    assert (finding.answer, finding.good, finding.bad) == (Answer.FOUND, at - 1, at)
    assert {Role.PARENT_AGAIN, Role.CULPRIT_AGAIN} <= {step.role for step in finding.steps}
    assert "RuntimeError" in finding.reason
    assert len(bench.ran) <= 3 + 3 + 2


def test_another_crash_is_neither_good_nor_bad(tmp_path: Path) -> None:
    """A commit that fails otherwise tells nothing of the crash: it stays a candidate, and is reported."""
    text = {4: KEY, 5: KEY, 6: SHAPES, 7: SHAPES}
    bench = failing(Bench(tmp_path, 8, lambda _: GOOD_CURVE), text.get)
    finding = bench.drive(search=CRASH)
    assert finding.answer is Answer.SEVERAL
    assert range(finding.good + 1, finding.bad + 1) == range(4, 7)
    assert {step.verdict for step in finding.steps if step.index in (4, 5)} <= {CommitVerdict.OTHER}
    assert any("something else is wrong there" in warning for warning in finding.warnings)


def test_infrastructure_never_counts_as_the_crash(tmp_path: Path) -> None:
    """A lost connection in the middle is a skip, never bad, and the culprit is found around it."""
    text = {3: NCCL, 5: SHAPES, 6: SHAPES, 7: SHAPES}
    bench = failing(Bench(tmp_path, 8, lambda _: GOOD_CURVE), text.get)
    finding = bench.drive(search=CRASH)
    assert (finding.answer, finding.bad) == (Answer.FOUND, 5)
    assert {step.verdict for step in finding.steps if step.index == 3} <= {CommitVerdict.SKIP}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ({7: NCCL}, "can't be judged"),
        ({-1: SHAPES, 7: SHAPES}, "good end .* is none"),
    ],
    ids=["infrastructure", "good end fails"],
)
def test_ends_that_cannot_serve_are_refused(tmp_path: Path, text: dict[int, str], complaint: str) -> None:
    """A bad end that lost its network is no crash, and a good end has to finish."""
    bench = failing(Bench(tmp_path, 8, lambda _: GOOD_CURVE), text.get)
    with pytest.raises(EndpointError, match=complaint):
        bench.drive(search=CRASH)


def test_a_crash_that_comes_and_goes_is_refused(tmp_path: Path) -> None:
    """A bad end that fails once and finishes once can't be bisected by single runs, and no commit is named."""
    calls: list[int] = []

    def text(index: int) -> str | None:
        calls.append(index)
        return SHAPES if index == 7 and calls.count(7) == 1 else None

    bench = failing(Bench(tmp_path, 8, lambda _: GOOD_CURVE), text)
    with pytest.raises(EndpointError, match="isn't the same twice"):
        bench.drive(search=CRASH)


def test_ends_that_both_finish_have_no_culprit(tmp_path: Path) -> None:
    """Without a crash at the bad end there is nothing to hunt."""
    bench = Bench(tmp_path, 8, lambda _: GOOD_CURVE)
    finding = bench.drive(search=CRASH)
    assert (finding.answer, finding.reason) == (Answer.NO_CULPRIT, "Both ends finish.")


def test_a_crash_is_taken_back(tmp_path: Path) -> None:
    """The bad end without the culprit finishes: it runs again."""
    bench = failing(Bench(tmp_path, 8, lambda _: GOOD_CURVE), lambda i: SHAPES if i >= 3 else None)
    bench.runner.reverted = lambda _bad, _culprit: GOOD_CURVE
    finding = bench.drive(search=CRASH)
    assert finding.revert is not None
    assert finding.revert.comes_back is True


def test_a_crash_hunt_goes_on_after_a_kill(tmp_path: Path) -> None:
    """Killed after any run, it goes on without repeating a finished one."""
    for kill_after in range(7):
        bench = failing(
            Bench(tmp_path / str(kill_after), 8, lambda _: GOOD_CURVE), lambda i: SHAPES if i >= 5 else None
        )
        bench.kill_after = kill_after
        with pytest.raises(KeyboardInterrupt):
            bench.drive(search=replace(CRASH, revert=False))
        bench.kill_after = None
        finding = bench.drive()
        assert (finding.answer, finding.bad, bench.lost) == (Answer.FOUND, 5, 0)
        assert len(bench.ran) == len(finding.steps)


@pytest.mark.parametrize(
    ("console", "exit_code", "cause", "kind"),
    [
        (SHAPES, 1, Cause.OWN, "traceback"),
        ("", -11, Cause.UNKNOWN, "signal"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n", 1, Cause.OWN, "cuda-oom"),
        (NCCL, 1, Cause.INFRASTRUCTURE, None),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered\n", 1, Cause.INFRASTRUCTURE, None),
        ("OSError: [Errno 28] No space left on device\n", 1, Cause.INFRASTRUCTURE, None),
        ("slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01 DUE TO NODE FAILURE ***\n", 1, None, None),
    ],
)
def test_what_a_failure_is_known_by(
    tmp_path: Path, console: str, exit_code: int, cause: Cause | None, kind: str | None
) -> None:
    """A failure of the run's own has a sign, one of the infrastructure has none and is a skip."""
    record = make_record("1" * 40, tmp_path)
    record.console.write_text(console, encoding="utf-8")
    record = replace(record, outcome=Outcome.FAILED, exit_code=exit_code, cause=cause)
    sign = failure_sign(record)
    assert (None if sign is None else sign.kind) == kind
    if sign is not None:
        assert weigh_crash(record, sign).verdict is CommitVerdict.BAD
    other = failure_sign(replace(record, exit_code=0, reason="only 3 of 10 iterations recorded a loss"))
    if other is not None:
        assert weigh_crash(record, other).verdict is not CommitVerdict.BAD


def wavering(at: int) -> Callable[[int], Script]:
    """Commits from one on give another curve each time."""
    calls: list[int] = []

    def look(index: int) -> Script:
        calls.append(index)
        return (*GOOD_CURVE[:3], 9.5 + 1e-6 * len(calls)) if index >= at else GOOD_CURVE

    return look


@pytest.mark.parametrize("at", range(8))
def test_names_the_first_commit_that_does_not_repeat(tmp_path: Path, at: int) -> None:
    """Each commit runs twice; the first whose two runs differ is named, however small the difference."""
    bench = Bench(tmp_path, 8, wavering(at))
    finding = bench.drive(search=replace(REPEAT, revert=False))
    assert (finding.answer, finding.good, finding.bad) == (Answer.FOUND, at - 1, at)
    assert len(bench.ran) == 2 * len(finding.steps)
    assert "differ by up to" in finding.reason


def test_another_curve_that_repeats_is_good(tmp_path: Path) -> None:
    """A change of the loss is nothing to a hunt for repeatability."""
    script = wavering(6)
    bench = Bench(tmp_path, 8, lambda index: BAD_CURVE if 2 <= index < 6 else script(index))
    finding = bench.drive(search=REPEAT)
    assert (finding.answer, finding.bad) == (Answer.FOUND, 6)


def test_ends_that_both_repeat_have_no_culprit(tmp_path: Path) -> None:
    """Where both ends repeat themselves there is nothing to hunt; where the good end doesn't, it is refused."""
    finding = Bench(tmp_path / "a", 8, lambda _: GOOD_CURVE).drive(search=REPEAT)
    assert (finding.answer, finding.reason) == (Answer.NO_CULPRIT, "Both ends repeat themselves.")
    with pytest.raises(EndpointError, match=r"good end .* is none"):
        Bench(tmp_path / "b", 8, wavering(-1)).drive(search=REPEAT)


def test_a_pair_that_is_cut_in_half_is_a_skip(tmp_path: Path) -> None:
    """If the second of two runs fails the commit is untestable, not bad."""
    script, calls = wavering(6), []

    def look(index: int) -> Script:
        calls.append(index)
        return Outcome.FAILED if index == 3 and calls.count(3) % 2 == 0 else script(index)

    finding = Bench(tmp_path, 8, look).drive(search=REPEAT)
    assert (finding.answer, finding.bad) == (Answer.FOUND, 6)
    assert {step.verdict for step in finding.steps if step.index == 3} <= {CommitVerdict.SKIP}


@pytest.mark.parametrize(
    ("search", "stage", "tolerance", "jobs"),
    [
        (replace(CRASH, min_effect=0.1), Stage(), None, 1),
        (CRASH, Stage(), 0.1, 1),
        (replace(FASTER, find_all=True), Stage(), None, 1),
        (FASTER, Stage(kind=StageKind.WALK), None, 1),
        (FASTER, Stage(), 0.1, 1),
        (FASTER, Stage(), None, 2),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, search: SearchOptions, stage: Stage, tolerance: float | None, jobs: int
) -> None:
    """One line says why, and what to leave out or to name, before anything runs."""
    plan = make_plan(tmp_path, "1" * 40, "2" * 40, tolerance=tolerance)
    plan = replace(plan, search=search, stage=stage, executor=ExecutorOptions(jobs=jobs))
    with pytest.raises(LossbisectError, match=r"--regress .*(Leave|Name) "):
        refuse_unfit(plan)


def refusal(plan: BisectPlan) -> str | None:
    """Why a plan is refused; None if it isn't."""
    try:
        refuse_unfit(plan)
    except LossbisectError as error:
        return str(error)
    return None


@pytest.mark.parametrize("regress", list(Regress))
@pytest.mark.parametrize("scope", [Scope(searched=Searched.BRIDGE), Scope(paths=("a",)), Scope(all_parents=True)])
def test_whatever_is_hunted_goes_with_every_scope(tmp_path: Path, regress: Regress, scope: Scope) -> None:
    """No hunt is tied to Megatron-LM's first-parent line."""
    plan = replace(make_plan(tmp_path, "1" * 40, "2" * 40), search=SearchOptions(regress=regress), scope=scope)
    assert refusal(plan) is None


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_ends_run_side_by_side(tmp_path: Path, jobs: int) -> None:
    """With two slots both ends go on at once, and the bad end's second run waits for its first one."""
    going, most = [0], [0]

    def wait() -> None:
        going[0] += 1
        time.sleep(0.05)
        most[0] = max(most[0], going[0])
        going[0] -= 1

    bench = failing(Bench(tmp_path, 1, lambda _: GOOD_CURVE), lambda i: SHAPES if i >= 0 else None)
    bench.runner.wait = wait
    finding = bench.drive(search=replace(CRASH, revert=False), jobs=jobs)
    assert (finding.answer, finding.bad, most[0]) == (Answer.FOUND, 0, jobs)
    roles = [step.role for step in finding.steps]
    assert {roles[0], roles[1]} == {Role.GOOD_END, Role.BAD_END}
    assert roles[2] is Role.BAD_AGAIN


def test_a_fix_needs_a_good_end_that_finishes(tmp_path: Path) -> None:
    """A newer end that fails in another way than the older one was not mended: nothing is named."""
    bench = failing(Bench(tmp_path, 8, lambda _: GOOD_CURVE), lambda i: KEY if i == 7 else SHAPES)
    with pytest.raises(EndpointError, match=r"good end .* is none: it fails in another way"):
        bench.drive(search=replace(CRASH, find_fix=True))


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_crash_of_a_range(tmp_path: Path, jobs: int) -> None:
    """With --all each stretch is told by what its runs say: one crash, none, another one; never the network."""
    text = {**dict.fromkeys((5, 6, 7, 8), SHAPES), 12: NCCL, **dict.fromkeys(range(15, 20), KEY)}
    bench = failing(Bench(tmp_path, 20, lambda _: GOOD_CURVE), text.get)
    finding = bench.drive(search=replace(CRASH, find_all=True, probe=4), jobs=jobs)
    assert finding.answer is Answer.EVERY_CHANGE
    assert [(change.good, change.bad) for change in finding.changes] == [(4, 5), (8, 9), (14, 15)]
    shown = [change.shown for change in finding.changes]
    assert "finishes" in shown[0][0]  # type: ignore[index]
    assert "RuntimeError" in shown[0][1]  # type: ignore[index]
    assert "KeyError" in shown[2][1]  # type: ignore[index]


def test_one_crash_after_another(tmp_path: Path) -> None:
    """A crash that another one follows at once is two changes, though no run between them finishes."""
    bench = failing(Bench(tmp_path, 9, lambda _: GOOD_CURVE), lambda i: None if i < 3 else SHAPES if i < 6 else KEY)
    finding = bench.drive(search=replace(CRASH, find_all=True))
    assert [(change.good, change.bad) for change in finding.changes] == [(2, 3), (5, 6)]


def test_a_range_without_a_crash_has_no_change(tmp_path: Path) -> None:
    """Ends that finish, or fail alike, have none; one that fails once and finishes once is refused."""
    quiet = Bench(tmp_path / "a", 9, lambda _: GOOD_CURVE).drive(search=replace(CRASH, find_all=True))
    assert (quiet.answer, quiet.reason) == (Answer.NO_CULPRIT, "The outcome is the same at both ends.")
    loud = failing(Bench(tmp_path / "b", 9, lambda _: GOOD_CURVE), lambda _: SHAPES)
    assert loud.drive(search=replace(CRASH, find_all=True)).answer is Answer.NO_CULPRIT
    calls: list[int] = []

    def text(index: int) -> str | None:
        calls.append(index)
        return SHAPES if index == -1 and calls.count(-1) == 1 else None

    flaky = failing(Bench(tmp_path / "c", 9, lambda _: GOOD_CURVE), text)
    with pytest.raises(EndpointError, match="isn't the same twice"):
        flaky.drive(search=replace(CRASH, find_all=True))


def test_every_loss_of_repeatability(tmp_path: Path) -> None:
    """With --all it is told where repeating ended and where it began again."""
    script = wavering(0)
    bench = Bench(tmp_path, 16, lambda index: script(index) if 3 <= index < 12 else GOOD_CURVE)
    finding = bench.drive(search=replace(REPEAT, find_all=True, probe=1))
    assert [change.bad for change in finding.changes] == [3, 12]
    assert len(bench.ran) == 2 * len(finding.steps)


@pytest.mark.parametrize("seed", range(20))
def test_the_truth_is_never_left_out(tmp_path: Path, seed: int) -> None:
    """Whatever else fails, or the infrastructure does, the commit that brought the crash is in the answer."""
    chance = random.Random(seed)
    count = chance.randint(2, 14)
    at = chance.randrange(count)
    kinds = [None, None, KEY, NCCL]
    noise = {i: chance.choice(kinds) for i in range(count - 1)}

    def text(index: int) -> str | None:
        return noise.get(index) or (SHAPES if index >= at else None)

    bench = failing(Bench(tmp_path, count, lambda _: GOOD_CURVE), text)
    finding = bench.drive(search=replace(CRASH, revert=False), jobs=chance.randint(1, 3))
    assert finding.answer in (Answer.FOUND, Answer.SEVERAL), f"seed {seed}"
    assert finding.good < at <= finding.bad, f"seed {seed}"
    assert finding.answer is Answer.SEVERAL or finding.bad == at, f"seed {seed}"
