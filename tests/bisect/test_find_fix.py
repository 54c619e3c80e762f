"""The commit that mended something: the same search with the terms turned round."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, bisect_range, resume_bisect
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.errors import GitError, StateError
from lossbisect.report.bisect import again_command, bisect_json, bisect_markdown, bisect_text
from lossbisect.report.html.bisect import write_bisect_page
from tests.bisect.support import GOOD_CURVE, Script, make_history
from tests.bisect.test_driver import Bench, one_change
from tests.bisect.test_figure_hunt import SLOWER, timed
from tests.bisect.test_sign_hunt import SHAPES, failing, wavering

FIX = SearchOptions(find_fix=True)
BROKEN = (10.5, math.nan, math.nan, math.nan)


@pytest.mark.usefixtures("played")
def test_the_first_fixed_commit_is_named_in_the_right_terms(tmp_path: Path) -> None:
    """The older end is called bad and the newer good in every output, and nothing speaks of a first bad commit."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.5] * 4 + [10.25] * 4)
    said: list[str] = []
    result = bisect_range(
        repo, "main", shas[0], search=FIX, on_event=lambda event: said.append(event.text), work_dir=tmp_path / "work"
    )
    assert result.answer is Answer.FOUND
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[4]
    text = bisect_text(result)
    assert text.startswith(f"FIRST FIXED COMMIT: {shas[4][:10]} is the first fixed commit")
    for shown in (text, bisect_markdown(result)):
        assert f"{shas[3][:10]} (last bad)" in shown
        assert f"{shas[4][:10]} (first good)" in shown
        assert "first bad" not in shown
        assert "good end again" not in shown
    assert any(line.startswith("Run 1 (bad end)") for line in said)
    assert any(line.startswith("Run 2 (good end)") for line in said)
    assert any(f"{shas[0][:10]} bad after" in line for line in said)
    assert json.loads(bisect_json(result))["find_fix"] is True
    words = again_command(result).split()
    assert words[words.index("--good") + 1] == shas[4]
    assert words[words.index("--bad") + 1] == shas[3]
    assert "--find-fix" in words
    write_bisect_page(result, tmp_path / "page.html", ["bisect"])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "first fixed commit" in page
    assert "first bad" not in page


@pytest.mark.usefixtures("played")
def test_ends_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    """A bad end that is newer has nothing to be mended, and both ends have to be named."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.5, 10.5, 10.25])
    with pytest.raises(GitError, match="must come before"):
        bisect_range(repo, shas[0], "main", search=FIX)
    with pytest.raises(GitError, match="needs both ends"):
        bisect_range(repo, None, shas[0], search=FIX)


@pytest.mark.usefixtures("played")
def test_going_on_takes_the_same_ends(tmp_path: Path) -> None:
    """The options that it was started with are right when it goes on, turned round they are refused."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.5] * 2 + [10.25] * 2)
    bisect_range(repo, shas[3], shas[0], search=FIX)
    again = resume_bisect(repo=repo, given={"good": shas[3], "bad": shas[0]})
    assert again.answer is Answer.FOUND
    with pytest.raises(StateError):
        resume_bisect(repo=repo, given={"good": shas[0], "bad": shas[3]})


@pytest.mark.parametrize("regress", [Regress.LOSS, Regress.NAN])
def test_a_nan_that_went_away(tmp_path: Path, regress: Regress) -> None:
    """From NaN to numbers: the commit with the first number is named, whichever way it is asked."""
    bench = Bench(tmp_path, 8, one_change(5, good=BROKEN, bad=GOOD_CURVE))
    finding = bench.drive(search=replace(FIX, regress=regress, revert=False))
    assert (finding.answer, finding.bad) == (Answer.FOUND, 5)


def test_a_crash_that_went_away(tmp_path: Path) -> None:
    """The older end fails, the newer one finishes."""
    bench = failing(Bench(tmp_path, 8, lambda _: GOOD_CURVE), lambda i: SHAPES if i < 5 else None)
    finding = bench.drive(search=replace(FIX, regress=Regress.CRASH, revert=False))
    assert (finding.answer, finding.bad) == (Answer.FOUND, 5)
    assert "first fixed commit" in finding.reason
    bench = failing(Bench(tmp_path / "both", 8, lambda _: GOOD_CURVE), lambda _: SHAPES)
    finding = bench.drive(search=replace(FIX, regress=Regress.CRASH))
    assert (finding.answer, finding.reason) == (Answer.NO_CULPRIT, "Both ends fail alike.")


def test_commits_that_repeat_themselves_again(tmp_path: Path) -> None:
    """The older end doesn't repeat itself, the newer one does."""
    script: Callable[[int], Script] = wavering(-1)
    bench = Bench(tmp_path, 8, lambda index: GOOD_CURVE if index >= 3 else script(index))
    finding = bench.drive(search=replace(FIX, regress=Regress.REPEATABILITY, revert=False))
    assert (finding.answer, finding.bad) == (Answer.FOUND, 3)


def test_iterations_that_became_faster(tmp_path: Path) -> None:
    """The commit that made iterations faster is a fix."""
    finding = timed(tmp_path, 6, seed=11, slower=0.8).drive(search=replace(SLOWER, find_fix=True))
    assert (finding.answer, finding.bad) == (Answer.FOUND, 6)
    assert "first fixed commit" in finding.reason
