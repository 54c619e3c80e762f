"""Commits that the frozen Bridge can't load: run with the Bridge of their day, and said so."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, BisectResult, bisect_range
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.training import Training
from lossbisect.bisect.types import Role
from lossbisect.cause import Cause
from lossbisect.errors import LossbisectError
from lossbisect.report.bisect import bisect_text
from lossbisect.train.types import Outcome, RunRecord, RunSpec, TrainerName
from tests.bisect.support import commit, git, make_record, write_curve

_LOSS, _API, _HAS = "megatron/core/loss.py", "megatron/core/api.txt", "src/megatron/bridge/api.txt"


def play(spec: RunSpec, out: Path, *, on_line: Callable[[str], None] | None = None, **_: object) -> RunRecord:
    """A trainer that imports only where Megatron-Core's interface is the one that Bridge knows."""
    del on_line
    assert spec.sources.mcore is not None
    assert spec.sources.bridge is not None
    out.mkdir(parents=True, exist_ok=True)
    record = make_record(git(spec.sources.mcore, "rev-parse", "HEAD"), out)
    if (spec.sources.mcore / _API).read_text() != (spec.sources.bridge / _HAS).read_text():
        error = "ImportError: cannot import name 'new_thing' from 'megatron.core'"
        record.console.write_text(f"Traceback (most recent call last):\n{error}\n", encoding="utf-8")
        return replace(record, spec=spec, outcome=Outcome.FAILED, reason=error, exit_code=1, cause=Cause.OWN)
    loss = float((spec.sources.mcore / _LOSS).read_text())
    write_curve(record.scalars, [11.0, 10.5, loss, loss - 0.125])
    return replace(record, spec=spec)


@pytest.fixture
def bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: None) -> tuple[Path, list[str]]:
    """A Bridge that took up an interface on the third day, and Megatron-LM's five commits, which did on the second."""
    del played
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", play)
    mlm = tmp_path / "mlm"
    mlm.mkdir()
    git(mlm, "init", "--quiet")
    steps = [("10.25", "old", 1), ("10.25", "old", 2), ("10.5", "old", 3), ("10.5", "new", 5), ("10.5", "new", 6)]
    shas = []
    for number, (loss, api, day) in enumerate(steps):
        files = {_LOSS: loss, _API: api, "megatron/core/__init__.py": "", "n.txt": str(number)}
        shas.append(commit(mlm, f"Change {number}", files, GIT_COMMITTER_DATE=f"2026-03-0{day}T12:00:00+00:00"))
    folder = tmp_path / "bridge"
    folder.mkdir()
    git(folder, "init", "--quiet")
    about = {"src/megatron/bridge/__init__.py": "", _HAS: "old"}
    commit(folder, "Start", about, GIT_COMMITTER_DATE="2026-02-01T12:00:00+00:00")
    git(folder, "submodule", "--quiet", "add", str(mlm), "3rdparty/Megatron-LM")
    commit(folder, "Pin", {}, GIT_COMMITTER_DATE="2026-03-01T12:00:00+00:00")
    commit(folder, "Take the interface up", {_HAS: "new"}, GIT_COMMITTER_DATE="2026-03-05T13:00:00+00:00")
    return folder, shas


def search(where: tuple[Path, list[str]], good: int = 0, bad: int = 4, **options: object) -> BisectResult:
    """Bisect between two of the commits."""
    folder, shas = where
    return bisect_range(folder, shas[good], shas[bad], search=SearchOptions(**options))  # type: ignore[arg-type]


def test_commits_of_another_day_run_with_their_bridge(bridge: tuple[Path, list[str]]) -> None:
    """With Bridge frozen three commits can't run; with the Bridge of their day the culprit is found, and it is said."""
    folder, shas = bridge
    git(folder, "checkout", "--quiet", "HEAD~1")
    git(folder, "update-ref", "refs/remotes/origin/HEAD", "main")
    result = search(bridge, bridge_follows=True)
    assert result.answer is Answer.FOUND
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[2]
    steps = [step for step in result.finding.steps if step.role is not Role.REVERTED]
    ran = {step.commit: step.record.spec.sources.bridge_commit for step in steps}
    newer = git(folder, "rev-parse", "main")
    assert ran[shas[4]] == newer
    assert ran[shas[0]] == result.plan.bridge_commit != newer
    text = bisect_text(result)
    assert f"{shas[4][:10]} with {newer[:10]}" in text
    assert "can't load" in text


def test_a_change_between_two_bridges_is_not_confirmed(bridge: tuple[Path, list[str]]) -> None:
    """Where the culprit and its parent ran with different Bridges, the change may be Bridge's: no name is sure."""
    folder, shas = bridge
    git(folder, "checkout", "--quiet", "HEAD~1")
    git(folder, "update-ref", "refs/remotes/origin/HEAD", "main")
    (folder / "3rdparty/Megatron-LM" / _LOSS).write_text("10.75")
    submodule = folder / "3rdparty/Megatron-LM"
    git(submodule, "checkout", "--quiet", "--force", shas[2])
    files = {_LOSS: "10.75", _API: "new"}
    moved = commit(submodule, "Both at once", files, GIT_COMMITTER_DATE="2026-03-06T12:00:00+00:00")
    git(submodule, "checkout", "--quiet", shas[2])
    result = bisect_range(
        folder, shas[2], moved, search=SearchOptions(bridge_follows=True, revert=False), allow_dirty=True
    )
    assert result.answer is Answer.UNCONFIRMED
    assert "the change may be Bridge's" in result.finding.reason


@pytest.mark.parametrize(("trainer", "regress"), [(TrainerName.MLM, Regress.LOSS), (TrainerName.BRIDGE, Regress.CRASH)])
def test_where_there_is_nothing_to_follow_it_is_refused(
    bridge: tuple[Path, list[str]], trainer: TrainerName, regress: Regress
) -> None:
    """Another trainer doesn't load Bridge, and a crash is what is hunted: a line says so."""
    folder, shas = bridge
    with pytest.raises(LossbisectError, match="--bridge-follows"):
        bisect_range(
            folder,
            shas[0],
            shas[4],
            training=Training(trainer=trainer),
            search=SearchOptions(bridge_follows=True, regress=regress),
        )
