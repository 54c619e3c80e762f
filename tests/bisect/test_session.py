"""A whole bisection on made repositories: real git, real trees, a made-up trainer."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, bisect_range, resume_bisect
from lossbisect.bisect.driver import Event, EventKind
from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.scope import Scope
from lossbisect.bisect.training import Training
from lossbisect.bisect.types import CommitVerdict, Role
from lossbisect.errors import EndpointError, GitError, RecipeError, StateError
from lossbisect.train.executors import ExecutorOptions
from lossbisect.train.types import Outcome, RunRecord, RunSpec, TrainerName
from tests.bisect.support import ScriptedRunner, commit, git, make_bridge, make_history, play, snapshot, write_curve

pytestmark = pytest.mark.usefixtures("played")

LOSSES = [10.25] * 6 + [None, None] + [10.25, 10.26, 10.26, 10.26]
"""Commit 9 moves the loss; 6 and 7 can't be imported."""


def test_finds_the_commit_in_a_megatron_lm_checkout(tmp_path: Path) -> None:
    """The culprit is named with author, pull request and files, and the checkout isn't touched."""
    repo = tmp_path / "Megatron LM é"
    shas = make_history(repo, LOSSES)
    git(repo, "config", "remote.origin.url", "https://github.com/NVIDIA/Megatron-LM")
    before = snapshot(repo)
    result = bisect_range(repo, shas[0], "main")
    assert result.answer is Answer.FOUND
    assert result.culprit is not None
    assert (result.culprit.commit.sha, result.culprit.parent.sha) == (shas[9], shas[8])
    assert (result.culprit.commit.author, result.culprit.commit.pull_request) == ("Ada Löve", "#109")
    assert {file.path for file in result.culprit.files} == {"megatron/core/loss.py", "number.txt"}
    assert result.culprit.harmless is None
    assert result.repository == "NVIDIA/Megatron-LM"
    assert result.plan.trainer is TrainerName.MLM
    assert snapshot(repo) == before
    assert not any((result.directory / "trees").iterdir())


def test_bridge_stays_while_megatron_core_moves(tmp_path: Path) -> None:
    """In a Bridge checkout every run has Bridge at its HEAD and a commit of the submodule, and nothing is touched."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    bridge = tmp_path / "bridge"
    pinned = make_bridge(bridge, tmp_path / "mlm")
    before = snapshot(bridge)
    result = bisect_range(bridge, shas[0], "bridge:HEAD")
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[9]
    assert result.plan.trainer is TrainerName.BRIDGE
    for step in result.finding.steps:
        sources = step.record.spec.sources
        assert (sources.mcore_commit, sources.bridge_commit) == (step.commit, pinned)
    assert snapshot(bridge) == before


def test_a_commit_that_cannot_be_checked_out_is_skipped(tmp_path: Path) -> None:
    """A commit with missing objects is untestable with its reason, and the search goes on."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25] * 6 + [10.5] * 3)
    lost = git(repo, "rev-parse", f"{shas[4]}:number.txt")
    (repo / ".git/objects" / lost[:2] / lost[2:]).unlink()
    result = bisect_range(repo, shas[0], "main", executor=ExecutorOptions(jobs=1))
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[6]
    searched = [step for step in result.finding.steps if step.role is Role.SEARCH]
    skipped = [step for step in searched if step.verdict is CommitVerdict.SKIP]
    assert [step.commit for step in skipped] == [shas[4]]
    assert skipped[0].record.outcome is Outcome.VOID
    assert "can't be checked out" in skipped[0].reason


def test_a_harmless_culprit_is_flagged(tmp_path: Path) -> None:
    """A commit that only touches documentation and tests is named all the same, with a doubt."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25] * 2)
    harmless = commit(repo, "Explain", {"docs/guide.md": "x", "tests/test_a.py": "x", ".github/workflows/a.yml": "x"})
    result = bisect_range(repo, shas[1], harmless, runner=_by_commit({shas[1]: 10.25, harmless: 10.5}))
    assert result.answer is Answer.FOUND
    assert result.culprit is not None
    assert result.culprit.harmless


def _by_commit(losses: dict[str, float]) -> ScriptedRunner:
    return ScriptedRunner(lambda sha: (11.0, 10.5, losses[sha], 10.0))


def test_going_on_needs_no_options_and_repeats_nothing(tmp_path: Path) -> None:
    """The latest bisect of a checkout goes on from its journal alone."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    stop_at = 5
    with pytest.raises(KeyboardInterrupt):
        bisect_range(repo, shas[0], "main", on_event=_stop_after(stop_at))
    events: list[Event] = []
    result = resume_bisect(repo=repo, on_event=events.append)
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[9]
    assert (
        len([event for event in events if event.kind is EventKind.RUN_FINISHED]) == len(result.finding.steps) - stop_at
    )


def test_skipped_commits_can_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a missing package is installed, only the commits that failed are run again, and the culprit is named."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.25, None, 10.5])
    first = bisect_range(repo, shas[0], "main")
    assert first.answer is Answer.SEVERAL

    def installed(spec: RunSpec, out: Path, **_: object) -> RunRecord:
        record = play(spec, out)
        if record.outcome is Outcome.FAILED:
            write_curve(record.scalars, [11.0, 10.5, 10.5, 10.375])
        return replace(record, outcome=Outcome.FINISHED)

    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", installed)
    again = resume_bisect(first.id, retry_skipped=True)
    assert again.answer is Answer.FOUND
    assert again.culprit is not None
    assert again.culprit.commit.sha == shas[2]
    ran_before = {str(step.record.out) for step in first.finding.steps if step.record.outcome is Outcome.FINISHED}
    assert ran_before <= {str(step.record.out) for step in again.finding.steps}


def _stop_after(count: int) -> Callable[[Event], None]:
    finished = 0

    def on_event(event: Event) -> None:
        nonlocal finished
        finished += event.kind is EventKind.RUN_FINISHED
        if event.kind is EventKind.RUN_STARTED and finished == count:
            raise KeyboardInterrupt

    return on_event


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"recipe": "vanilla-1gpu"}, "recipe = vanilla-cpu, not vanilla-1gpu"),
        ({"bad": "HEAD~1"}, "bad = "),
        ({"timeout_s": 5.0}, "timeout_s = 1800.0, not 5.0"),
        ({"trainer": TrainerName.BRIDGE}, "trainer = mlm, not bridge"),
        ({"tolerance": 1e-3}, "tolerance = None, not 0.001"),
        ({"scope": Scope(paths=("docs",))}, r"paths = \(\), not \('docs',\)"),
        ({"search": SearchOptions(probe=2)}, "probe = 0, not 2"),
    ],
)
def test_going_on_with_other_options_is_refused(tmp_path: Path, given: dict[str, object], named: str) -> None:
    """An option that differs from the start is named; the same option is fine."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    first = bisect_range(repo, shas[0], "main")
    with pytest.raises(StateError, match=named):
        resume_bisect(first.id, given=given)
    same = {"recipe": "vanilla-cpu", "good": shas[0], "bad": "HEAD", "metric": "lm_loss", "tolerance": None}
    assert resume_bisect(first.id, given=same).answer is Answer.FOUND


def test_a_changed_recipe_file_is_refused(tmp_path: Path) -> None:
    """Runs of two recipes are never compared: a recipe file is known by its content."""
    from lossbisect.train import recipes

    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    recipe = tmp_path / "mine.toml"
    recipe.write_bytes((Path(recipes.__file__).parent / "vanilla-cpu.toml").read_bytes())
    first = bisect_range(repo, shas[0], "main", training=Training(recipe=str(recipe)))
    assert resume_bisect(first.id).answer is Answer.FOUND
    with recipe.open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    with pytest.raises(StateError, match="recipe has changed"):
        resume_bisect(first.id)


def test_wrong_options_start_nothing(tmp_path: Path) -> None:
    """An unknown recipe or commit is refused before a journal is made."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    with pytest.raises(RecipeError):
        bisect_range(repo, shas[0], "main", training=Training(recipe="nonsense"))
    with pytest.raises(GitError):
        bisect_range(repo, "nonsense", "main")
    assert not (tmp_path / "cache").exists()


def test_an_end_that_cannot_be_imported(tmp_path: Path) -> None:
    """A bad end that crashes is an error of ours, with the log's last line."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.25, None])
    with pytest.raises(EndpointError, match="No module named 'nothing_of_that_name'"):
        bisect_range(repo, shas[0], "main")


def test_runs_that_are_gone_are_an_error(tmp_path: Path) -> None:
    """A journal whose runs were deleted says so instead of guessing."""
    import shutil

    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    first = bisect_range(repo, shas[0], "main")
    shutil.rmtree(first.directory / "runs")
    with pytest.raises(StateError, match="are gone"):
        resume_bisect(first.id)


def test_a_kill_at_any_moment_repeats_no_finished_run(tmp_path: Path) -> None:
    """Killed with -9 at random moments, again and again: the same culprit, and no finished run is repeated."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    work_dir = tmp_path / "work"
    script = [sys.executable, str(Path(__file__).with_name("killed.py")), str(repo), shas[0], "main", str(work_dir)]
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    rng = random.Random(seed)
    finished: list[str] = []
    answer, kills = "", 0
    while not answer:
        ids = [path.parent.name for path in work_dir.glob("bisects/*/journal.ndjson") if path.read_bytes()]
        process = subprocess.Popen([*script, *ids[-1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if kills < 8:
            _wait_for_a_new_run(process, work_dir)
            time.sleep(rng.uniform(0, 0.3))
            process.kill()
            kills += process.wait() == -signal.SIGKILL
        output, complaint = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), complaint
        answer = output.strip()
        now = _journalled(work_dir)
        assert now[: len(finished)] == finished
        finished = now
    assert kills >= 3
    assert answer == f"first bad commit {shas[9]}"
    usable = [run for run in finished if run not in ("search 5", "search 6")]  # these two fail, and are tried again
    assert len(usable) == len(set(usable))


def _wait_for_a_new_run(process: "subprocess.Popen[str]", work_dir: Path) -> None:
    """Return when the process has begun a run, or ended."""
    before = set(work_dir.glob("bisects/*/runs/*"))
    while process.poll() is None and set(work_dir.glob("bisects/*/runs/*")) <= before:
        time.sleep(0.005)


def _journalled(work_dir: Path) -> list[str]:
    """Role and index of each finished run in the journal."""
    runs = []
    for path in work_dir.glob("bisects/*/journal.ndjson"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            row = json.loads(line)
            if row["kind"] == "step":
                runs.append(f"{row['role']} {row['index']}")
    return runs
