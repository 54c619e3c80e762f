"""The last questions about a culprit: the bad end without it, and whether it can have done it at all."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, bisect_range
from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.recall import recall_bisect
from lossbisect.bisect.types import CommitVerdict, Role
from lossbisect.report.bisect import bisect_json, bisect_markdown, bisect_text, warnings_of
from tests.bisect.support import BAD_CURVE, GOOD_CURVE, Script, ScriptedRunner, commit, git, snapshot
from tests.bisect.test_driver import Bench, index_of, one_change

OTHER_CURVE = (10.5, 10.3, 9.9, 9.9)


@pytest.mark.parametrize(
    ("curve", "comes_back"), [(GOOD_CURVE, True), (BAD_CURVE, False), (OTHER_CURVE, False)], ids=["yes", "no", "other"]
)
def test_the_bad_end_is_run_without_the_culprit(tmp_path: Path, curve: Script, *, comes_back: bool) -> None:
    """One more run says whether taking the culprit back brings the loss back; it isn't the bad end's own run."""
    bench = Bench(tmp_path, 8, one_change(3))
    asked: list[tuple[int, int]] = []

    def reverted(bad: str, culprit: str) -> Script:
        asked.append((index_of(bad), index_of(culprit)))
        return curve

    bench.runner.reverted = reverted
    finding = bench.drive(search=SearchOptions())
    assert (finding.answer, finding.bad) == (Answer.FOUND, 3)
    assert asked == [(7, 3)]
    assert finding.revert is not None
    assert finding.revert.comes_back is comes_back
    assert [step.role for step in finding.steps].count(Role.REVERTED) == 1
    again = bench.drive()
    assert asked == [(7, 3)]
    assert again.revert == finding.revert


def test_a_culprit_that_does_not_revert_cleanly_says_so(tmp_path: Path) -> None:
    """Without a clean revert the question stays open with its reason, and the answer stands."""
    bench = Bench(tmp_path, 8, one_change(3))
    finding = bench.drive(search=SearchOptions())
    assert (finding.answer, finding.bad) == (Answer.FOUND, 3)
    assert finding.revert is not None
    assert finding.revert.comes_back is None
    assert "doesn't apply" in finding.revert.reason


@pytest.mark.parametrize(
    ("at", "options"), [(7, SearchOptions()), (3, SearchOptions(revert=False)), (3, SearchOptions(find_all=True))]
)
def test_nothing_is_reverted_where_that_says_nothing(tmp_path: Path, at: int, options: SearchOptions) -> None:
    """The bad end itself, --no-revert and --all: no such run."""
    bench = Bench(tmp_path, 8, one_change(at))
    bench.runner.reverted = lambda _bad, _culprit: GOOD_CURVE
    finding = bench.drive(search=options)
    assert finding.revert is None
    assert all(step.role is not Role.REVERTED for step in finding.steps)


def history(repo: Path, steps: list[dict[str, str]]) -> list[str]:
    """A checkout with one commit for each set of files; all SHAs, oldest first."""
    repo.mkdir()
    git(repo, "init", "--quiet")
    start = {"megatron/core/__init__.py": "", "megatron/core/other.py": "1\n", "tests/test_loss.py": "1\n"}
    return [commit(repo, f"Change {n} (#{n})", files) for n, files in enumerate([{**start, **steps[0]}, *steps[1:]])]


LOSS, OTHER = "megatron/core/loss.py", "megatron/core/other.py"


@pytest.mark.usefixtures("played")
def test_real_git_takes_the_culprit_back(tmp_path: Path) -> None:
    """On a checkout the revert is made in a tree of ours, its tests left out, and every report says what it did."""
    repo = tmp_path / "mlm"
    steps = [
        {LOSS: "LOSS = 10.25\n"},
        {OTHER: "2\n"},
        {LOSS: "LOSS = 10.5\n", "tests/test_loss.py": "2\n"},
        {OTHER: "3\n", "tests/test_loss.py": "3\n"},
    ]
    shas = history(repo, steps)
    before = {name: content for name, (_, _, content) in snapshot(repo).items()}
    result = bisect_range(repo, shas[0], "main")
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[2]
    assert result.finding.revert is not None
    assert result.finding.revert.comes_back is True
    step = next(step for step in result.finding.steps if step.role is Role.REVERTED)
    assert step.record.spec.sources.stands_for == shas[3]
    assert step.record.provenance is not None
    assert step.record.provenance.mcore_commit not in shas
    assert "the loss comes back: yes" in bisect_text(result)
    assert "the loss comes back: yes" in bisect_markdown(result)
    assert json.loads(bisect_json(result))["revert"]["comes_back"] is True
    assert {name: content for name, (_, _, content) in snapshot(repo).items()} == before


@pytest.mark.usefixtures("played")
def test_real_git_says_why_it_cannot_be_taken_back(tmp_path: Path) -> None:
    """A later change of the same lines makes the revert impossible, which is said."""
    repo = tmp_path / "mlm"
    shas = history(repo, [{LOSS: "LOSS = 10.25\n"}, {LOSS: "LOSS = 10.5\n"}, {LOSS: "LOSS = 10.50\n"}])
    result = bisect_range(repo, shas[0], "main")
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[1]
    assert result.finding.revert is not None
    assert result.finding.revert.comes_back is None
    assert "doesn't apply" in result.finding.revert.reason
    assert "can't be told" in bisect_text(result)


@pytest.mark.usefixtures("played")
def test_a_merge_is_taken_back_against_its_first_parent(tmp_path: Path) -> None:
    """A merge that moved the loss is reverted with all that it brought in."""
    repo = tmp_path / "mlm"
    shas = history(repo, [{LOSS: "LOSS = 10.25\n"}])
    git(repo, "checkout", "--quiet", "-b", "work")
    commit(repo, "Move the loss", {LOSS: "LOSS = 10.5\n"})
    git(repo, "checkout", "--quiet", "main")
    commit(repo, "Meanwhile", {OTHER: "2\n"})
    git(repo, "merge", "--quiet", "--no-ff", "--message", "Merge work", "work")
    merge = git(repo, "rev-parse", "HEAD")
    commit(repo, "After it", {OTHER: "3\n"})
    result = bisect_range(repo, shas[0], "main")
    assert result.culprit is not None
    assert result.culprit.commit.sha == merge
    assert result.finding.revert is not None
    assert result.finding.revert.comes_back is True


_PRINTING = 'import logging\n\n\ndef step(x):\n    """Do it."""\n    {}\n    return x + 1\n'


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({"docs/guide.md": "x", "tests/test_a.py": "x"}, "documentation, tests or CI"),
        ({OTHER: _PRINTING.format("logging.info('%s', x)  # seen")}, "comments, docstrings or printing"),
        ({OTHER: _PRINTING.format("x = x * 2")}, None),
    ],
    ids=["documents", "printing", "code"],
)
def test_a_culprit_that_looks_harmless_is_run_once_more(
    tmp_path: Path, files: dict[str, str], what: str | None
) -> None:
    """A commit of documents or prints is doubted: two more runs, and a warning; one of code isn't."""
    repo = tmp_path / "mlm"
    shas = history(repo, [{OTHER: _PRINTING.format("print(x)")}, {"megatron/core/a.py": "1\n"}, files])
    result = bisect_range(repo, shas[1], shas[2], runner=by_commit({shas[1]: 10.25, shas[2]: 10.5}))
    assert result.answer is Answer.FOUND
    assert result.culprit is not None
    checked = {Role.PARENT_CHECKED, Role.CULPRIT_CHECKED} <= {step.role for step in result.finding.steps}
    assert checked is (what is not None)
    assert any(f"changes only {what}" in warning for warning in warnings_of(result)) is checked


def by_commit(losses: dict[str, float]) -> ScriptedRunner:
    """A runner by whose runs each commit has a loss."""
    return ScriptedRunner(lambda sha: (11.0, 10.5, losses[sha], 10.0))


@pytest.mark.usefixtures("played")
def test_a_harmless_culprit_that_wavers_is_not_confirmed(tmp_path: Path) -> None:
    """If the third run of a commit of documents differs, the answer is unconfirmed."""
    repo = tmp_path / "mlm"
    shas = history(repo, [{LOSS: "1"}, {"docs/guide.md": "x"}])
    ran: list[str] = []

    def script() -> Callable[[str], Script]:
        def look(sha: str) -> Script:
            ran.append(sha)
            is_bad = sha == shas[1] and ran.count(sha) < 3
            return BAD_CURVE if is_bad else GOOD_CURVE

        return look

    result = bisect_range(repo, shas[0], shas[1], runner=ScriptedRunner(script()))
    assert result.answer is Answer.UNCONFIRMED
    last = [step for step in result.finding.steps if step.role is Role.CULPRIT_CHECKED]
    assert [step.verdict for step in last] == [CommitVerdict.SKIP]


@pytest.mark.usefixtures("played")
def test_a_finished_bisect_is_recalled_with_its_revert(tmp_path: Path) -> None:
    """The journal alone gives the answer again, clean revert or not."""
    for name, last in (("clean", {OTHER: "3\n"}), ("unclean", {LOSS: "LOSS = 10.50\n"})):
        repo = tmp_path / name
        shas = history(repo, [{LOSS: "LOSS = 10.25\n"}, {LOSS: "LOSS = 10.5\n"}, last])
        result = bisect_range(repo, shas[0], "main")
        recalled = recall_bisect(repo=repo)
        assert getattr(recalled, "finding", None) is not None
        assert recalled.finding.revert == result.finding.revert  # type: ignore[union-attr]
