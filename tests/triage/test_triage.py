"""Whole triages on made repositories: real git, real trees, a made-up trainer."""

import random
from pathlib import Path

import pytest

from lossbisect.cause import Cause
from lossbisect.errors import GitError
from lossbisect.triage.run import acknowledge, triage
from lossbisect.triage.types import Axis, CaseReport, Kind
from tests.bisect.support import commit, git, make_bridge, make_history, snapshot
from tests.triage.support import Machine

pytestmark = pytest.mark.usefixtures("machine")


def _one(repo: Path, sha: str = "HEAD", **others: object) -> CaseReport:
    report = triage(repo, commit=sha, **others)  # type: ignore[arg-type]
    assert report is not None
    return report.cases[0]


def test_a_history_replayed_names_the_planted_commit_once(tmp_path: Path) -> None:
    """Commit by commit: ok with one run each, the planted one a regression by itself, afterwards known and no news."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.25, 10.25, 10.26, 10.26])
    before = snapshot(repo)
    reports = [triage(repo, commit=sha) for sha in shas]
    told = [(report.cases[0].kind, report.is_news, report.exit_code) for report in reports if report]
    assert told == [
        (Kind.OK, False, 0),
        (Kind.OK, False, 0),
        (Kind.OK, False, 0),
        (Kind.REGRESSION, True, 1),
        (Kind.REGRESSION, False, 1),
    ]
    assert reports[3] is not None
    who = reports[3].cases[0].blame
    assert who is not None
    assert [each.sha for each in who.commits] == [shas[3]]
    assert who.is_confirmed
    assert [report.cases[0].runs for report in reports if report] == [1, 1, 1, 3, 1]
    assert snapshot(repo) == before


def test_only_the_suspect_interval_is_bisected(tmp_path: Path, machine: Machine) -> None:
    """When several commits have landed since the last triage the culprit among them is found, and no older one runs."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25] * 6 + [10.26] * 4)
    assert _one(repo, shas[3]).kind is Kind.OK
    machine.ran.clear()
    found = _one(repo)
    assert found.kind is Kind.REGRESSION
    assert found.blame is not None
    assert [each.sha for each in found.blame.commits] == [shas[6]]
    assert found.blame.is_confirmed
    assert found.blame.bisect_id
    assert set(machine.ran) <= set(shas[3:])


def test_a_lower_loss_is_an_improvement(tmp_path: Path) -> None:
    """It's reported all the same, since nobody said that it was meant."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.0])
    _one(repo, shas[0])
    assert _one(repo).kind is Kind.IMPROVEMENT


def test_other_numbers_of_the_same_commit_are_the_environment(tmp_path: Path, machine: Machine) -> None:
    """The same commit gives other numbers than yesterday, repeatably: no commit is blamed; today's become the level."""
    repo = tmp_path / "mlm"
    make_history(repo, [10.25])
    _one(repo)
    machine.shift = 0.01
    found = _one(repo)
    assert (found.kind, found.blame) == (Kind.ENVIRONMENT, None)
    assert _one(repo).kind is Kind.OK


def test_an_environment_that_moved_is_not_blamed_on_a_commit(tmp_path: Path, machine: Machine) -> None:
    """A new commit in a new environment: the reference commit is run again, and has moved alike."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.25, 10.25])
    _one(repo, shas[0])
    machine.shift = 0.01
    found = _one(repo, shas[1])
    assert (found.kind, found.blame) == (Kind.ENVIRONMENT, None)
    report = _one(repo, shas[2])
    assert (report.kind, report.runs) == (Kind.OK, 1)


def test_a_commit_is_found_although_the_environment_moved_too(tmp_path: Path, machine: Machine) -> None:
    """Both axes moved at once: the commit is judged against the reference of today, and the drift is told."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.25, 10.26])
    _one(repo, shas[0])
    machine.shift = 0.01
    found = _one(repo)
    assert found.kind is Kind.REGRESSION
    assert found.blame is not None
    assert [each.sha for each in found.blame.commits] == [shas[2]]
    assert any("environment" in note for note in found.notes)


def test_a_commit_that_does_not_repeat_itself_is_flaky(tmp_path: Path, machine: Machine) -> None:
    """Its runs lie as far from each other as from the reference; who brought the noise is told, and it's learned."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.25, 10.25])
    _one(repo, shas[0])
    machine.noisy[shas[1]] = [0.001, -0.001]
    found = _one(repo, shas[1])
    assert (found.kind, found.blame) == (Kind.FLAKY, None)
    assert any("repeats itself" in note for note in found.notes)
    machine.noisy[shas[2]] = [0.0005]
    assert _one(repo, shas[2]).kind is Kind.OK


def test_an_acknowledged_commit_is_the_new_reference(tmp_path: Path) -> None:
    """After 'ack' the new curve is right, the old one would be a change, and a later break is a regression again."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.5, 10.5, 10.75])
    _one(repo, shas[0])
    assert _one(repo, shas[1]).kind is Kind.REGRESSION
    given = acknowledge(repo, shas[1], "a new initialisation")
    assert given.commit == shas[1]
    assert _one(repo, shas[2]).kind is Kind.OK
    found = _one(repo, shas[3])
    assert found.kind is Kind.REGRESSION
    assert found.blame is not None
    assert [each.sha for each in found.blame.commits] == [shas[3]]


def test_a_commit_acknowledged_beforehand_raises_no_alarm(tmp_path: Path) -> None:
    """It's said that it moved the loss, by whom it was meant, and the exit code is 0."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.5])
    _one(repo, shas[0])
    acknowledge(repo, shas[1], "meant")
    report = triage(repo)
    assert report is not None
    assert report.cases[0].kind is Kind.ACKNOWLEDGED
    assert report.cases[0].acknowledgement is not None
    assert report.cases[0].acknowledgement.reason == "meant"
    assert (report.exit_code, report.is_news) == (0, False)


def test_a_second_change_before_the_first_is_acknowledged_is_its_own(tmp_path: Path) -> None:
    """An open alarm doesn't hide the next one, and the next one isn't blamed on the first culprit; a repair is ok."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.5, 10.75, 10.25])
    _one(repo, shas[0])
    _one(repo, shas[1])
    found = _one(repo, shas[2])
    assert found.kind is Kind.REGRESSION
    assert found.is_news
    assert found.blame is not None
    assert [each.sha for each in found.blame.commits] == [shas[2]]
    repaired = _one(repo, shas[3])
    assert repaired.kind is Kind.OK
    assert any("back" in note for note in repaired.notes)


def test_a_commit_that_does_not_run_is_broken_and_nothing_else(tmp_path: Path) -> None:
    """It is named if the reference commit runs, told once, and is no statement about the loss."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, None, None, 10.25])
    _one(repo, shas[0])
    found = _one(repo, shas[1])
    assert found.kind is Kind.BROKEN
    assert found.is_news
    assert found.blame is not None
    assert [each.sha for each in found.blame.commits] == [shas[1]]
    assert not _one(repo, shas[2]).is_news
    assert _one(repo, shas[3]).kind is Kind.OK


@pytest.mark.parametrize("cause", [Cause.INFRASTRUCTURE, Cause.OWN])
def test_a_machine_that_runs_nothing_blames_nobody(tmp_path: Path, machine: Machine, cause: Cause) -> None:
    """A dead node, or a package that is gone for every commit, says nothing about the newest one."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.25])
    _one(repo, shas[0])
    machine.fails["*"] = cause
    found = triage(repo)
    assert found is not None
    assert (found.cases[0].kind, found.exit_code, found.is_news) == (Kind.UNDECIDED, 3, True)
    again = triage(repo, since_last=True)
    assert again is not None, "nothing was said of it yet"
    assert not again.is_news
    machine.fails.clear()
    found = triage(repo, since_last=True)
    assert found is not None
    assert found.cases[0].kind is Kind.OK


def test_without_a_history_the_parent_is_the_reference(tmp_path: Path) -> None:
    """The very first triage of a commit that moves the loss says so."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.5])
    found = _one(repo)
    assert found.kind is Kind.REGRESSION
    assert found.blame is not None
    assert [each.sha for each in found.blame.commits] == [shas[1]]


def test_a_range_names_its_own_reference(tmp_path: Path) -> None:
    """B is held against A, whatever the history has in between; the wrong way round is refused."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.5, 10.5])
    _one(repo, shas[1])
    found = _one(repo, shas[2], reference=shas[0])
    assert found.kind is Kind.REGRESSION
    assert found.reference is not None
    assert found.reference.mcore == shas[0]
    with pytest.raises(GitError, match="comes before"):
        triage(repo, commit=shas[0], reference=shas[2])


def test_since_last_does_nothing_twice(tmp_path: Path, machine: Machine) -> None:
    """What the history has isn't run again."""
    repo = tmp_path / "mlm"
    make_history(repo, [10.25, 10.25])
    assert triage(repo, since_last=True) is not None
    machine.ran.clear()
    assert triage(repo, since_last=True) is None
    assert machine.ran == []


def test_a_branch_is_judged_by_its_own_ancestors(tmp_path: Path) -> None:
    """The curve of a commit of another branch is no reference."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.25])
    git(repo, "checkout", "--quiet", "-b", "side", shas[0])
    other = commit(repo, "Side", {"megatron/core/loss.py": "LOSS = 9.0\n"})
    _one(repo, shas[0])
    _one(repo, other)
    assert _one(repo, shas[1]).kind is Kind.OK


@pytest.mark.parametrize("bridge_is_to_blame", [True, False])
def test_where_bridge_and_megatron_core_both_moved_the_right_one_is_blamed(
    tmp_path: Path, machine: Machine, *, bridge_is_to_blame: bool
) -> None:
    """One run holds Megatron-Core fixed and moves Bridge alone: that tells the two apart."""
    shas = make_history(tmp_path / "mlm", [10.25, 10.25 if bridge_is_to_blame else 10.5])
    bridge = tmp_path / "bridge"
    git(tmp_path / "mlm", "checkout", "--quiet", shas[0])
    make_bridge(bridge, tmp_path / "mlm")
    git(bridge / "3rdparty/Megatron-LM", "checkout", "--quiet", shas[0])
    old = commit(bridge, "Old pin", {"a.txt": "1"})
    git(bridge / "3rdparty/Megatron-LM", "fetch", "--quiet", "origin", shas[1])
    git(bridge / "3rdparty/Megatron-LM", "checkout", "--quiet", shas[1])
    new = commit(bridge, "Bump", {"a.txt": "2"})
    if bridge_is_to_blame:
        machine.by_bridge[new] = 0.5
    _one(bridge, f"bridge:{old}")
    found = _one(bridge, "bridge:HEAD")
    assert found.kind is Kind.REGRESSION
    assert found.blame is not None
    assert found.blame.axis is (Axis.BRIDGE if bridge_is_to_blame else Axis.MCORE)
    assert [each.sha for each in found.blame.commits] == [new if bridge_is_to_blame else shas[1]]


def test_any_replayed_history_blames_exactly_its_changes(tmp_path: Path) -> None:
    """Of random changes each is reported once, by the commit that made it, and no other commit is."""
    seed = 20261130
    chance = random.Random(seed)
    losses = [10.25]
    for number in range(7):
        losses.append(losses[-1] + (0.01 * (number + 1) if chance.random() < 0.3 else 0.0))
    changed = {number for number in range(1, 8) if losses[number] != losses[number - 1]}
    repo = tmp_path / "mlm"
    shas = make_history(repo, losses)
    _one(repo, shas[0])
    blamed = []
    for sha in shas[1:]:
        found = _one(repo, sha)
        if found.is_news and found.blame:
            blamed += [shas.index(each.sha) for each in found.blame.commits]
    assert blamed == sorted(changed), f"seed {seed}"


def test_a_small_change_under_noise_is_seen_by_repeats_at_the_tip(tmp_path: Path, machine: Machine) -> None:
    """Ten commits scatter; one shifted by less than their scatter's width is repeated and named at once."""
    repo = tmp_path / "mlm"
    suite = tmp_path / "suite.toml"
    suite.write_text("[[triage]]\nrepeats = 8\n", encoding="utf-8")
    shas = make_history(repo, [10.25] * 10 + [10.26])
    scatter = (0.003, -0.003, 0.001, -0.001, 0.002, -0.002, 0.0, 0.003, -0.003, 0.001)
    for number, sha in enumerate(shas[:10]):
        machine.noisy[sha] = [scatter[(number + turn) % 10] for turn in range(10)] * 3
        assert _one(repo, sha, suite=suite).kind in (Kind.OK, Kind.FLAKY)
    machine.noisy[shas[10]] = [*scatter] * 3
    found = _one(repo, shas[10], suite=suite)
    assert found.kind is Kind.REGRESSION
    assert found.blame is not None
    assert [each.sha for each in found.blame.commits] == [shas[10]]
