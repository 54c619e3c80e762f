"""From a range of Bridge's commits to the one of either repository: real git and trees, a made-up trainer."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, BisectResult, bisect_range, resume_bisect
from lossbisect.bisect.events import Event, EventKind
from lossbisect.bisect.scope import Scope, Searched, StageKind
from lossbisect.errors import GitError
from lossbisect.train.types import Outcome, RunRecord, RunSpec
from tests.bisect import support
from tests.bisect.support import commit, git, make_history, make_record, snapshot, write_curve

A, B = 10.25, 10.5
PIN = "3rdparty/Megatron-LM"
CODE = "src/megatron/bridge/__init__.py"
BRIDGE = Scope(searched=Searched.BRIDGE)


def play(spec: RunSpec, out: Path, **_: object) -> RunRecord:
    """Stand in for `run_recipe`: the loss is Megatron-LM's, and what Bridge adds to it and makes of its change."""
    assert spec.sources.mcore is not None
    assert spec.sources.bridge is not None
    out.mkdir(parents=True, exist_ok=True)
    value = _numbers(spec.sources.mcore / "megatron/core/loss.py")["LOSS"]
    bridge = _numbers(spec.sources.bridge / CODE)
    record = make_record(git(spec.sources.mcore, "rev-parse", "HEAD"), out)
    if value < bridge.get("NEEDS", 0.0) or value > bridge.get("AT_MOST", 99.0):
        record.console.write_text("TypeError: no such argument\n", encoding="utf-8")
        return replace(record, spec=spec, outcome=Outcome.FAILED, reason="TypeError: no such argument", exit_code=1)
    loss = A + bridge.get("TIMES", 1.0) * (value - A) + bridge.get("PLUS", 0.0)
    write_curve(record.scalars, [11.0, 10.5, loss, loss - 0.125])
    return replace(record, spec=spec)


def _numbers(file: Path) -> dict[str, float]:
    pairs = (line.split(" = ") for line in file.read_text(encoding="utf-8").splitlines())
    return {name: float(ast.literal_eval(value)) for name, value in pairs}


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """A Bridge checkout.

    Attributes:
        repo: Its root.
        mcore: SHAs of Megatron-LM, by number.
        bridge: SHAs of Bridge, in order.
    """

    repo: Path
    mcore: list[str]
    bridge: list[str]


def make(folder: Path, losses: Sequence[float | None], steps: Sequence[int | str | tuple[int, str]]) -> History:
    """Make a Bridge checkout.

    Args:
        folder: Where.
        losses: Losses of Megatron-LM's commits.
        steps: Bridge's commits: a pin by its number, Bridge's own code, or both.
    """
    mcore = make_history(folder / "mlm", losses)
    repo = folder / "bridge"
    repo.mkdir()
    git(repo, "init", "--quiet")
    commit(repo, "Start", {CODE: ""})
    git(repo, "submodule", "--quiet", "add", str(folder / "mlm"), PIN)
    shas: list[str] = []
    for step in steps:
        pin, code = step if isinstance(step, tuple) else (step, None) if isinstance(step, int) else (None, step)
        if pin is not None:
            git(repo / PIN, "checkout", "--quiet", "--detach", mcore[pin])
        files = {} if code is None else {CODE: code}
        shas.append(commit(repo, f"Step {len(shas)}", {**files, "number.txt" if code else "uv.lock": str(len(shas))}))
    return History(repo=repo, mcore=mcore, bridge=shas)


def search(history: History, **options: object) -> BisectResult:
    """Bisect all of Bridge's commits."""
    return bisect_range(history.repo, history.bridge[0], "HEAD", scope=BRIDGE, **options)  # type: ignore[arg-type]


def named(result: BisectResult) -> str | None:
    """The SHA that was named."""
    return result.culprit.commit.sha if result.culprit else None


def told(result: BisectResult) -> list[str]:
    """What the stages said."""
    return [passage.text for passage in result.passages]


def test_bridges_own_commit(tmp_path: Path) -> None:
    """A commit of Bridge that leaves the pin is the answer; each run had the Megatron-LM that its Bridge pins."""
    history = make(tmp_path, [A, A, A], [0, 1, "PLUS = 0.25\n", 2, "PLUS = 0.25\nTIMES = 1.0\n"])
    before = snapshot(history.repo)
    result = search(history)
    assert (result.answer, named(result)) == (Answer.FOUND, history.bridge[2])
    assert "Bridge's own change" in told(result)[0]
    pins = {sha: history.mcore[pin] for sha, pin in zip(history.bridge, (0, 1, 1, 2, 2), strict=True)}
    for step in result.finding.steps:
        sources = step.record.spec.sources
        assert (sources.bridge_commit, sources.mcore_commit) == (step.commit, pins[step.commit])
    assert snapshot(history.repo) == before


def test_a_bump_is_gone_into(tmp_path: Path) -> None:
    """A commit that only moves the pin leads on to Megatron-LM's commit, with Bridge held at it."""
    history = make(tmp_path, [A, A, A, B, B, B], [0, 1, "PLUS = 0.0\n", 5, "PLUS = 0.0\nTIMES = 1.0\n"])
    result = search(history)
    assert (result.answer, named(result)) == (Answer.FOUND, history.mcore[3])
    assert result.plan.bridge_commit == history.bridge[3]
    assert [passage.kind for passage in result.passages] == [StageKind.RANGE, StageKind.PINNED]
    assert "only moves Bridge's pin" in told(result)[0]
    assert {step.record.spec.sources.bridge_commit for step in result.finding.steps} == {history.bridge[3]}


def test_both_moved_and_megatron_core_did_it(tmp_path: Path) -> None:
    """The old Bridge with the new Megatron-LM is bad already: the search goes on inside, with the old Bridge."""
    history = make(tmp_path, [A, A, B, B], [0, (3, "PLUS = 0.0\n"), "PLUS = 0.0\nTIMES = 1.0\n"])
    result = search(history)
    assert (result.answer, named(result)) == (Answer.FOUND, history.mcore[2])
    assert result.plan.bridge_commit == history.bridge[0]
    assert "Megatron-Core's change: Megatron-Core carries the difference by itself" in told(result)[0]


def test_both_moved_and_bridge_did_it(tmp_path: Path) -> None:
    """The new Bridge with the old Megatron-LM is bad already: it is Bridge's own change."""
    history = make(tmp_path, [A, A, A], [0, (2, "PLUS = 0.25\n"), "PLUS = 0.25\nTIMES = 1.0\n"])
    result = search(history)
    assert (result.answer, named(result)) == (Answer.FOUND, history.bridge[1])
    assert "Bridge's own change: Megatron Bridge carries the difference by itself" in told(result)[0]


def test_both_moved_and_only_both_do_it(tmp_path: Path) -> None:
    """Neither half is bad alone: that is said, and with the new Bridge held the other half is named too."""
    history = make(tmp_path, [A, A, B, B], [(0, "TIMES = 0.0\n"), (3, "TIMES = 1.0\n"), "TIMES = 1.0\nPLUS = 0.0\n"])
    result = search(history)
    assert (result.answer, named(result)) == (Answer.FOUND, history.mcore[2])
    assert result.plan.bridge_commit == history.bridge[1]
    assert "only the combination of Megatron-Core and Megatron Bridge" in told(result)[0]


def test_a_mix_that_cannot_run_is_no_evidence(tmp_path: Path) -> None:
    """If the new Bridge can't run the old Megatron-LM it isn't blamed, nor cleared; what can be told is told."""
    code = "NEEDS = 10.5\n"
    history = make(tmp_path, [A, A, B, B], [(0, "AT_MOST = 10.3\n"), (3, code), code + "PLUS = 0.0\n"])
    result = search(history)
    assert (result.answer, named(result)) == (Answer.FOUND, history.bridge[1])
    assert "can't be judged" in told(result)[0]


def test_a_pin_that_moved_back(tmp_path: Path) -> None:
    """A bump that was taken back: the commit is named whose loss the older pin lacks."""
    history = make(tmp_path, [B, B, A, A], [3, 0, "PLUS = 0.0\n"])
    result = search(history)
    assert (result.answer, named(result)) == (Answer.FOUND, history.mcore[2])


def test_commits_of_bridge_by_their_own_names(tmp_path: Path) -> None:
    """Ends are Bridge's commits; a Megatron-LM checkout has none."""
    history = make(tmp_path, [A, B], [0, 1])
    git(history.repo, "tag", "v0.6.0", history.bridge[0])
    result = bisect_range(history.repo, "0.6.0", scope=BRIDGE)
    assert named(result) == history.mcore[1]
    with pytest.raises(GitError, match="no commits of Bridge"):
        bisect_range(tmp_path / "mlm", "HEAD~1", "HEAD", scope=BRIDGE)


def test_bridge_can_be_held_at_another_commit(tmp_path: Path) -> None:
    """Where Megatron-LM is searched, Bridge stays at the commit that was named."""
    history = make(tmp_path, [A, A, B], [0, "PLUS = 0.25\n"])
    git(history.repo / PIN, "checkout", "--quiet", "--detach", history.mcore[2])
    result = bisect_range(history.repo, history.mcore[0], history.mcore[2], bridge="HEAD~1")
    assert named(result) == history.mcore[2]
    assert {step.record.spec.sources.bridge_commit for step in result.finding.steps} == {history.bridge[0]}


def _stop_at_run(number: int) -> Callable[[Event], None]:
    started = 0

    def on_event(event: Event) -> None:
        nonlocal started
        started += event.kind is EventKind.RUN_STARTED
        if event.kind is EventKind.RUN_STARTED and started == number:
            raise KeyboardInterrupt

    return on_event


def test_stopping_anywhere_and_going_on(tmp_path: Path) -> None:
    """Stopped again and again, through all three stages, it comes to the same answer and repeats no finished run."""
    history = make(tmp_path, [A, A, B, B], [0, (3, "PLUS = 0.0\n"), "PLUS = 0.0\nTIMES = 1.0\n"])
    with pytest.raises(KeyboardInterrupt):
        search(history, on_event=_stop_at_run(2))
    stops = 0
    while True:
        try:
            result = resume_bisect(repo=history.repo, on_event=_stop_at_run(4))
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops >= 3
    assert named(result) == history.mcore[2]
    assert [passage.kind for passage in result.passages] == [StageKind.PAIR, StageKind.PINNED]
    ids = sorted(path.parent.name for path in (tmp_path / "cache/bisects").glob("*/journal.ndjson"))
    assert ids == [result.id, f"{result.id}.2", f"{result.id}.3"]
