"""How far a pin can be moved: made repositories, a made-up trainer."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from lossbisect.bisect.advance import advance
from lossbisect.bisect.culprit import Answer
from lossbisect.bisect.options import SearchOptions
from lossbisect.cli import main
from lossbisect.errors import EndpointError, GitError
from lossbisect.report.advance import advance_json, advance_text, newest_of
from tests.bisect.support import ScriptedRunner, commit, git, make_bridge, make_history

pytestmark = pytest.mark.usefixtures("played")


def checkout(folder: Path, losses: Sequence[float | None], at: int = 0) -> list[str]:
    """A Megatron-LM checkout at one of its commits, the rest of them on ``origin/main``; all SHAs."""
    shas = make_history(folder, losses)
    git(folder, "update-ref", "refs/remotes/origin/main", shas[-1])
    git(folder, "checkout", "--quiet", "--detach", shas[at])
    return shas


def test_names_the_newest_with_the_same_loss_and_the_first_without(tmp_path: Path) -> None:
    """From HEAD to the tip of origin's main; both commits are told, and the command that moves there."""
    repo = tmp_path / "mlm"
    shas = checkout(repo, [10.0] + [10.25] * 5 + [10.5] * 4, at=1)
    result = advance(repo)
    assert newest_of(result) is not None
    text = advance_text(result)
    assert text.startswith(f"ADVANCE to {shas[5][:10]}: 4 of 8 commits on")
    assert f"first that doesn't   {shas[6][:10]}" in text
    assert f"git -C {repo} checkout {shas[5]}" in text
    told = json.loads(advance_json(result))
    assert (told["newest"], told["first_other"], told["commits_on"]) == (shas[5], shas[6], 4)
    assert told["untestable_between"] == []


def test_the_newest_commit_itself(tmp_path: Path) -> None:
    """If the tip gives the same loss that is the answer, in three runs."""
    repo = tmp_path / "mlm"
    shas = checkout(repo, [10.25] * 6)
    result = advance(repo)
    assert (result.answer, len(result.finding.steps)) == (Answer.NO_CULPRIT, 3)
    assert advance_text(result).startswith(f"ADVANCE to {shas[5][:10]}, the newest one: 5 of 5 commits on")


def test_the_very_next_commit_changes_it(tmp_path: Path) -> None:
    """There is nowhere to go: STAY."""
    repo = tmp_path / "mlm"
    shas = checkout(repo, [10.25] + [10.5] * 5)
    result = advance(repo)
    assert newest_of(result) is None
    assert result.finding.bad == 0
    assert advance_text(result).startswith(f"STAY: no commit after {shas[0][:10]}")


def test_a_window_of_failures_is_searched_around(tmp_path: Path) -> None:
    """Commits that fail between ones that run don't stop the way; those right before the change are reported."""
    repo = tmp_path / "mlm"
    shas = checkout(repo, [10.25, 10.25, None, None, 10.25, 10.25, None, 10.5, 10.5])
    result = advance(repo)
    newest = newest_of(result)
    assert newest is not None
    assert newest.sha == shas[5]
    told = json.loads(advance_json(result))
    assert (told["first_other"], told["untestable_between"]) == (shas[7], [shas[6]])
    assert f"1 commit before it can't be tested: {shas[6][:10]}" in advance_text(result)


def test_a_failure_that_came_to_stay_is_the_end(tmp_path: Path) -> None:
    """Where the tip fails too, the first commit that fails is the first that doesn't give the loss, with its reason."""
    repo = tmp_path / "mlm"
    shas = checkout(repo, [10.25] * 5 + [None] * 4)
    result = advance(repo)
    newest = newest_of(result)
    assert newest is not None
    assert newest.sha == shas[4]
    assert "ModuleNotFoundError" in advance_text(result)


def test_a_bridge_checkout_starts_at_its_pin(tmp_path: Path) -> None:
    """The pin counts, not what is checked out in the submodule, and lossbisect's own command moves there."""
    shas = make_history(tmp_path / "mlm", [10.25] * 3 + [10.5])
    git(tmp_path / "mlm", "checkout", "--quiet", shas[1])
    bridge = tmp_path / "bridge"
    make_bridge(bridge, tmp_path / "mlm")
    submodule = bridge / "3rdparty/Megatron-LM"
    git(submodule, "fetch", "--quiet", "origin", "main:refs/remotes/origin/main")
    git(submodule, "checkout", "--quiet", shas[0])
    result = advance(bridge, allow_dirty=True)
    assert result.commits.good.sha == shas[1]
    newest = newest_of(result)
    assert newest is not None
    assert newest.sha == shas[2]
    assert f"lossbisect mcore use {shas[2]} --repo {bridge}" in advance_text(result)


def test_what_is_no_way_ahead_is_refused(tmp_path: Path) -> None:
    """No branch of origin's that stands on HEAD, the commit in use itself, or one on another line: a line says so."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25] * 3)
    with pytest.raises(GitError, match="--to COMMIT"):
        advance(repo)
    with pytest.raises(GitError, match="in use already"):
        advance(repo, "main")
    git(repo, "checkout", "--quiet", "-b", "side", shas[0])
    commit(repo, "Aside", {"megatron/core/loss.py": "LOSS = 1.0\n"})
    with pytest.raises(GitError, match="doesn't stand on"):
        advance(repo, "main")


def test_a_commit_in_use_that_fails_is_refused(tmp_path: Path) -> None:
    """Without a loss of today's there is nothing to keep."""
    repo = tmp_path / "mlm"
    checkout(repo, [None, 10.25, 10.25])
    with pytest.raises(EndpointError, match="commit in use"):
        advance(repo)


def test_a_commit_that_wavers_leaves_it_unconfirmed(tmp_path: Path) -> None:
    """If the first other commit gives the old loss when it runs again, nothing is sure."""
    repo = tmp_path / "mlm"
    shas = checkout(repo, [10.25] * 4 + [10.5])
    ran: list[str] = []

    def script(sha: str) -> tuple[float, ...]:
        ran.append(sha)
        return (11.0, 10.5, 10.5 if sha == shas[4] and ran.count(sha) == 1 else 10.25, 10.0)

    result = advance(repo, runner=ScriptedRunner(script))
    assert result.answer is Answer.UNCONFIRMED
    assert "not confirmed" in advance_text(result)


@pytest.mark.parametrize(
    ("losses", "code"),
    [([10.25, 10.25, 10.5], 0), ([10.25, 10.25], 0), ([10.25, 10.5], 1), ([10.25, None, 10.5], 3)],
)
def test_the_exit_code_says_whether_there_is_a_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], losses: Sequence[float | None], code: int
) -> None:
    """0 there is one, 1 there is none, 3 that isn't sure."""
    repo = tmp_path / "mlm"
    checkout(repo, losses)
    with pytest.raises(SystemExit) as ended:
        main(["advance", "--repo", str(repo), "--json", "--work-dir", str(tmp_path / "work")])
    assert ended.value.code == code
    assert json.loads(capsys.readouterr().out)["commits"] == len(losses) - 1


def test_skipped_commits_are_never_run_here_either(tmp_path: Path) -> None:
    """--skip goes through to the search."""
    repo = tmp_path / "mlm"
    shas = checkout(repo, [10.25] * 4 + [10.5] * 2)
    result = advance(repo, search=SearchOptions(skip=(shas[3],)))
    assert shas[3] not in {step.commit for step in result.finding.steps}
    newest = newest_of(result)
    assert newest is not None
    assert newest.sha == shas[2]
