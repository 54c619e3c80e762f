"""Triage of a Bridge checkout's own commits: real git, real trees, a made-up trainer."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from lossbisect.report.triage import triage_text
from lossbisect.triage.run import triage
from lossbisect.triage.types import Axis, CaseReport, Kind, TriageReport
from tests.bisect.support import commit, git, make_bridge, make_history, snapshot
from tests.triage.support import Machine

pytestmark = pytest.mark.usefixtures("machine")

PIN = "3rdparty/Megatron-LM"


@dataclass
class Checkout:
    """A Bridge checkout.

    Attributes:
        repo: Its root.
        mcore: SHAs of Megatron-LM, oldest first.
    """

    repo: Path
    mcore: list[str]

    def step(self, number: int, *, pin: int | None = None) -> str:
        """A commit of Bridge: its own code, or nothing but its pin; its SHA."""
        if pin is None:
            return commit(self.repo, f"Bridge's change {number}", {"src/megatron/bridge/code.py": f"{number}\n"})
        git(self.repo / PIN, "fetch", "--quiet", "origin", self.mcore[pin])
        git(self.repo / PIN, "checkout", "--quiet", "--detach", self.mcore[pin])
        return commit(self.repo, f"Bump {number}", {"uv.lock": f"{number}\n"})


def make(folder: Path, losses: list[float | None], *, pin: int = 0) -> Checkout:
    """Bridge on one of Megatron-LM's commits."""
    shas = make_history(folder / "mlm", losses)
    git(folder / "mlm", "checkout", "--quiet", shas[pin])
    make_bridge(folder / "bridge", folder / "mlm")
    made = Checkout(folder / "bridge", shas)
    made.step(0, pin=pin)
    return made


def _one(checkout: Checkout, **others: object) -> tuple[TriageReport, CaseReport]:
    report = triage(checkout.repo, **others)  # type: ignore[arg-type]
    assert report is not None
    return report, report.cases[0]


def test_bridges_own_commit_is_judged_against_the_one_before_and_blamed(tmp_path: Path, machine: Machine) -> None:
    """Without a history too: Megatron-Core stays where it is, and the report's first line names Bridge's commit."""
    bridge = make(tmp_path, [10.25, 10.5])
    sha = bridge.step(1)
    machine.by_bridge[sha] = 0.5
    before = snapshot(bridge.repo)
    report, found = _one(bridge)
    assert found.kind is Kind.REGRESSION
    assert found.blame is not None
    assert (found.blame.axis, found.blame.is_confirmed) == (Axis.BRIDGE, True)
    assert [each.sha for each in found.blame.commits] == [sha]
    text = triage_text(report)
    assert text.startswith(f"REGRESSION: Bridge {sha[:10]} Bridge's change 1")
    assert f"lossbisect ack bridge:{sha[:10]}" in text
    assert set(machine.ran) == {bridge.mcore[0]}
    assert snapshot(bridge.repo) == before


def test_a_commit_of_bridge_that_changes_nothing_is_ok(tmp_path: Path) -> None:
    """One run more for each commit, and nobody is blamed."""
    bridge = make(tmp_path, [10.25])
    _one(bridge)
    bridge.step(1)
    report, found = _one(bridge)
    assert (found.kind, found.runs, found.blame) == (Kind.OK, 1, None)
    assert report.newest is report.bridge


def test_several_commits_of_bridge_are_bisected(tmp_path: Path, machine: Machine) -> None:
    """The one among them is found, each trained with the Megatron-LM that it pins."""
    bridge = make(tmp_path, [10.25])
    _one(bridge)
    shas = [bridge.step(number) for number in range(1, 6)]
    for sha in shas[2:]:
        machine.by_bridge[sha] = 0.5
    _, found = _one(bridge)
    assert found.blame is not None
    assert (found.blame.axis, found.blame.is_confirmed) == (Axis.BRIDGE, True)
    assert [each.sha for each in found.blame.commits] == [shas[2]]


def test_a_bump_is_bisected_inside(tmp_path: Path) -> None:
    """A commit of Bridge that moves the submodule leads on to Megatron-Core's commit, past the pin's own end."""
    bridge = make(tmp_path, [10.25, 10.25, 10.5, 10.5, 10.5])
    _one(bridge)
    bridge.step(1, pin=4)
    report, found = _one(bridge)
    assert found.blame is not None
    assert (found.blame.axis, found.blame.is_confirmed) == (Axis.MCORE, True)
    assert [each.sha for each in found.blame.commits] == [bridge.mcore[2]]
    assert triage_text(report).startswith("REGRESSION: Bridge")


def test_a_pin_that_moves_back_is_its_bump(tmp_path: Path) -> None:
    """No commit of Megatron-Core came in between: the commit of Bridge that moved the pin is named."""
    bridge = make(tmp_path, [10.25, 10.5], pin=1)
    _one(bridge)
    sha = bridge.step(1, pin=0)
    _, found = _one(bridge)
    assert found.kind is Kind.IMPROVEMENT
    assert found.blame is not None
    assert [each.sha for each in found.blame.commits] == [sha]


def test_a_submodule_moved_by_hand_is_megatron_cores(tmp_path: Path) -> None:
    """Bridge stays, its submodule stands at another commit than the pin: that commit is judged."""
    bridge = make(tmp_path, [10.25, 10.5])
    git(bridge.repo / PIN, "checkout", "--quiet", "--detach", bridge.mcore[1])
    report, found = _one(bridge)
    assert report.newest is report.commit
    assert found.blame is not None
    assert (found.blame.axis, [each.sha for each in found.blame.commits]) == (Axis.MCORE, [bridge.mcore[1]])


@pytest.mark.parametrize("pin", [None, 1])
def test_a_commit_of_bridge_that_does_not_run_is_broken(tmp_path: Path, machine: Machine, pin: int | None) -> None:
    """Its own commit and its bump alike are named, and no loss is spoken of."""
    bridge = make(tmp_path, [10.25, None])
    _one(bridge)
    sha = bridge.step(1, pin=pin)
    if pin is None:
        machine.breaks_bridge.add(sha)
    _, found = _one(bridge)
    assert found.kind is Kind.BROKEN
    assert found.blame is not None
    assert sha in [each.sha for each in found.blame.commits]
