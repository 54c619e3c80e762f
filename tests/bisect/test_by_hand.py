"""Commits that the user says not to run, and changes that commits are run with: real git, a made-up trainer."""

import json
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, BisectResult, bisect_range, resume_bisect
from lossbisect.bisect.driver import Event, EventKind
from lossbisect.bisect.options import Fixup, SearchOptions
from lossbisect.bisect.types import CommitVerdict
from lossbisect.cli import main
from lossbisect.errors import GitError
from lossbisect.train.types import Outcome
from tests.bisect.support import commit, git, make_history, snapshot

pytestmark = pytest.mark.usefixtures("played")

_BROKEN = "import nothing_of_that_name\n"
LOSSES = [10.25, 10.25, 10.25, None, None, None, 10.5, 10.5]
"""Commits 3 to 5 can't be imported; the loss has moved when it can be seen again."""


def mending(folder: Path, loss: float) -> Path:
    """A patch file that makes a broken commit run with this loss."""
    path = folder / "mend.patch"
    path.write_text(
        "diff --git a/megatron/core/loss.py b/megatron/core/loss.py\n--- a/megatron/core/loss.py\n"
        f"+++ b/megatron/core/loss.py\n@@ -1 +1 @@\n-{_BROKEN}+LOSS = {loss}\n"
    )
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file's bytes. Git renews the time of an object that it would write and finds there already."""
    return {name: content for name, (_, _, content) in snapshot(folder).items()}


def search(repo: Path, good: str, bad: str, **options: tuple[object, ...]) -> BisectResult:
    """Bisect with these options of the search."""
    return bisect_range(repo, good, bad, search=SearchOptions(**options))  # type: ignore[arg-type]


def test_skipped_commits_are_never_run(tmp_path: Path) -> None:
    """Commits that are set aside don't run; where the change hides among them they stay candidates, and it is said."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25] * 4 + [10.5] * 4)
    result = search(repo, shas[0], "main", skip=(f"{shas[2]}..{shas[5]}",))
    assert not {step.commit for step in result.finding.steps} & set(shas[3:6])
    assert result.answer is Answer.SEVERAL
    assert [commit.sha for commit in result.candidates] == shas[3:7]
    assert any("Not run, as you said" in warning and shas[3][:10] in warning for warning in result.finding.warnings)


def test_skipped_commits_away_from_the_change_cost_nothing(tmp_path: Path) -> None:
    """With a single commit set aside elsewhere the culprit is named as ever."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25] * 4 + [10.5] * 4)
    result = search(repo, shas[0], "main", skip=(shas[6],))
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[4]
    assert shas[6] not in {step.commit for step in result.finding.steps}


@pytest.mark.parametrize("end", [0, -1])
def test_an_end_cannot_be_skipped(tmp_path: Path, end: int) -> None:
    """A skip that holds an end is refused with a line that says so, before anything runs."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.25, 10.5])
    with pytest.raises(GitError, match="has to be run"):
        search(repo, shas[0], "main", skip=(shas[end],))


def test_a_patch_makes_broken_commits_testable(tmp_path: Path) -> None:
    """Without the patch three commits can't run; with it the culprit among them is named, and nothing is touched."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    before = contents(repo)
    assert search(repo, shas[0], "main").answer is Answer.SEVERAL
    fixup = Fixup.parse(f"{mending(tmp_path, 10.25)}@{shas[2]}..{shas[5]}")
    result = search(repo, shas[0], "main", fixups=(fixup,))
    assert result.answer is Answer.FOUND
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[6]
    mended = [step for step in result.finding.steps if step.commit == shas[5]]
    assert {step.record.spec.sources.stands_for for step in mended} == {shas[5]}
    assert {step.verdict for step in mended} == {CommitVerdict.GOOD}
    others = [step.record.spec.sources for step in result.finding.steps if step.commit not in shas[3:6]]
    assert {sources.stands_for for sources in others} == {None}
    names = ", ".join(sha[:10] for sha in shas[3:6])
    assert f"Run with {tmp_path / 'mend.patch'}: {names}." in result.finding.warnings
    assert contents(repo) == before


def test_a_patched_commit_has_a_name_of_its_own(tmp_path: Path) -> None:
    """The same commit with the same patch is the same run each time, with another patch another one."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    culprits, ran = [], []
    for loss in (10.25, 10.5, 10.25):
        fixup = Fixup.parse(f"{mending(tmp_path, loss)}@{shas[2]}..{shas[5]}")
        result = search(repo, shas[0], "main", fixups=(fixup,))
        assert result.culprit is not None
        culprits.append(result.culprit.commit.sha)
        patched = [step for step in result.finding.steps if step.commit in shas[2:6]]
        ran.append({(step.commit, step.record.spec.sources.mcore_commit) for step in patched})
    assert culprits == [shas[6], shas[3], shas[6]]
    # Which commits run depends on which run ends first; the midpoint always does.
    assert ran[0] & ran[2]
    assert len(dict(ran[0] | ran[2])) == len(ran[0] | ran[2])
    assert not ran[0] & ran[1]


def test_where_a_patch_does_not_apply_the_commit_is_skipped(tmp_path: Path) -> None:
    """A commit that the patch doesn't fit is untestable with that reason, never good or bad."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    fixup = Fixup.parse(f"{mending(tmp_path, 10.5)}@{shas[1]}..{shas[5]}")
    result = search(repo, shas[0], "main", fixups=(fixup,))
    unfit = [step for step in result.finding.steps if step.commit == shas[2]]
    assert unfit, "it is the parent of the first commit with the other loss"
    assert all(step.verdict is CommitVerdict.SKIP for step in unfit)
    assert all(step.record.outcome is Outcome.VOID and "doesn't apply" in step.reason for step in unfit)
    assert [commit.sha for commit in result.candidates] == shas[2:4]


def test_where_a_patch_is_there_already_the_commit_is_run_as_it_is(tmp_path: Path) -> None:
    """A commit that holds what the patch makes needs it no more."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    fixup = Fixup.parse(f"{mending(tmp_path, 10.25)}@{shas[0]}..{shas[5]}")
    result = search(repo, shas[0], "main", fixups=(fixup,))
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[6]
    assert all(step.record.spec.sources.stands_for is None for step in result.finding.steps if step.commit == shas[2])


def test_a_later_fix_is_applied_to_the_commits_before_it(tmp_path: Path) -> None:
    """What another commit changed is applied where it is missing, and left where it is."""
    repo = tmp_path / "mlm"
    files = {"megatron/core/loss.py": "LOSS = 10.25\n", "megatron/core/a.py": "1\n", "megatron/core/__init__.py": ""}
    repo.mkdir()
    git(repo, "init", "--quiet")
    shas = [commit(repo, "Start", files)]
    shas.append(commit(repo, "Break the import", {"megatron/core/loss.py": _BROKEN}))
    shas.append(commit(repo, "Go on", {"megatron/core/a.py": "2\n"}))
    shas.append(commit(repo, "Mend the import", {"megatron/core/loss.py": "LOSS = 10.5\n", "tests/test_a.py": "x"}))
    shas.append(commit(repo, "Go further", {"megatron/core/a.py": "3\n"}))
    fixup = Fixup.parse(f"{shas[3]}@{shas[0]}..{shas[4]}")
    result = search(repo, shas[0], "main", fixups=(fixup,))
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[1]
    made = {step.commit: step.record.spec.sources.stands_for for step in result.finding.steps}
    names = ", ".join(sha[:10] for sha in shas[1:3])
    assert f"Run with {shas[3]}: {names}." in result.finding.warnings
    assert made[shas[1]] == shas[1]
    assert made[shas[4]] is None


def test_a_bisect_goes_on_without_the_patch_file(tmp_path: Path) -> None:
    """The patch is part of the journal: after a stop its file may be gone, and no finished run is repeated."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    patch = mending(tmp_path, 10.25)

    def stop(event: Event) -> None:
        if event.kind is EventKind.RUN_FINISHED:
            raise KeyboardInterrupt

    options = SearchOptions(fixups=(Fixup.parse(f"{patch}@{shas[2]}..{shas[5]}"),))
    with pytest.raises(KeyboardInterrupt):
        bisect_range(repo, shas[0], "main", search=options, on_event=stop)
    patch.unlink()
    result = resume_bisect(repo=repo)
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[6]


@pytest.mark.parametrize(("name", "complaint"), [("nothing", "neither a file nor a commit"), ("README", "no patch")])
def test_a_fixup_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, complaint: str
) -> None:
    """Neither a file nor a commit, or a file that is no patch: one line says so."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.5])
    (tmp_path / "README").write_text("Hello\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GitError, match=complaint):
        search(repo, shas[0], "main", fixups=(Fixup.parse(name),))


def test_a_name_with_an_at_sign_is_no_range() -> None:
    """Only ``@A..B`` at the end says when; other at signs belong to the name."""
    assert Fixup.parse("main@{1}") == Fixup(name="main@{1}")
    assert Fixup.parse("a@b.patch@v1..v2") == Fixup(name="a@b.patch", when="v1..v2")


def test_the_command_line_takes_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--skip, --fixup, --find-fix, --regress and --no-revert reach the search, and the plan in the report says so."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [None, None, None, None, 10.25, 10.25])
    words = ["bisect", "--repo", str(repo), "--bad", shas[0], "--good", "main", "--find-fix", "--regress", "crash"]
    words += ["--skip", shas[2], "--fixup", f"{mending(tmp_path, 10.5)}@{shas[2]}..{shas[3]}", "--no-revert", "--json"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--work-dir", str(tmp_path / "work")])
    assert ended.value.code == 3, "the fix may be one of two commits: that before it is skipped, or mended by the patch"
    told = json.loads(capsys.readouterr().out)
    assert [commit["sha"] for commit in told["candidates"]] == shas[2:4]
    assert told["plan"]["search"]["skip"] == [shas[2]]
    assert told["plan"]["search"]["fixups"][0]["when"] == f"{shas[2]}..{shas[3]}"
    assert (told["find_fix"], told["revert"]) == (True, None)
