"""``lossbisect report`` and ``open``: a bisect's page from what it left on the disk."""

from pathlib import Path

import pytest

from lossbisect.bisect import BisectResult, Event, EventKind, bisect_range
from lossbisect.bisect.recall import Unfinished, recall_bisect
from lossbisect.bisect.state import Journal
from lossbisect.cli import main
from tests.bisect import support
from tests.bisect.support import make_history, snapshot

LOSSES = [10.25] * 3 + [None] + [10.25, 10.25, 10.26, 10.26]
"""Commit 6 moves the loss; the first midpoint can't be imported."""


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs read their loss from the tree that they were given."""
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", support.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_run", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))


def run(*arguments: str) -> int:
    """The exit code of ``lossbisect``."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


def bisected(folder: Path, *, stop_after: int | None = None) -> list[str]:
    """A bisect, finished or stopped after so many runs; the SHAs of its history."""
    shas = make_history(folder / "mlm", LOSSES)
    ended = 0

    def on_event(event: Event) -> None:
        nonlocal ended
        ended += event.kind is EventKind.RUN_FINISHED
        if ended == stop_after:
            raise KeyboardInterrupt

    try:
        bisect_range(folder / "mlm", shas[0], "main", on_event=on_event)
    except KeyboardInterrupt:
        assert stop_after is not None
    return shas


def test_finished_bisect_gives_its_answer_again(tmp_path: Path) -> None:
    """The same commit, found from the journal alone; nothing is run and nothing is written."""
    shas = bisected(tmp_path)
    before = snapshot(tmp_path / "cache")
    found = recall_bisect()
    assert isinstance(found, BisectResult)
    assert found.culprit is not None
    assert found.culprit.commit.sha == shas[6]
    assert snapshot(tmp_path / "cache") == before


def test_stopped_bisect_says_how_far_it_is(tmp_path: Path) -> None:
    """Its finished runs, and no answer, also while another process has it."""
    bisected(tmp_path, stop_after=4)
    folder = next((tmp_path / "cache" / "bisects").iterdir())
    with Journal.open(tmp_path / "cache", folder.name):
        found = recall_bisect(folder.name)
    assert isinstance(found, Unfinished)
    assert len(found.steps) == 4
    assert found.trouble is None


def test_report_writes_the_page_of_the_latest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its path goes to stdout; the page names the commit, and the skipped run's log is on it."""
    shas = bisected(tmp_path)
    assert run("report", "-o", str(tmp_path / "page.html")) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"{shas[6][:10]} is the first bad commit" in text
    assert "No module named" in text


def test_report_of_a_stopped_one_tells_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bracket so far, the commits that may hold the change, and the command."""
    shas = bisected(tmp_path, stop_after=5)
    assert run("report") == 0
    page = Path(capsys.readouterr().out.strip())
    text = page.read_text(encoding="utf-8")
    assert page.name == "report.html"
    assert "After 5 runs the change lies between" in text
    assert shas[6][:10] in text
    assert f"lossbisect bisect --resume {page.parent.name}" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report",), "no bisect"),
        (("report", "nonsense"), "no bisect"),
        (("report", "-o", "x.txt"), "must end in .html"),
    ],
)
def test_nothing_to_report_exits_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one line that says why."""
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("has_browser", "code"), [(True, 0), (False, 2)])
def test_open_shows_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], has_browser: bool, code: int
) -> None:
    """In the browser; without one its path is all there is, and the exit code says so."""
    shown: list[str] = []

    def show(url: str) -> bool:
        shown.append(url)
        return has_browser

    monkeypatch.setattr("webbrowser.open", show)
    bisected(tmp_path)
    assert run("open") == code
    assert shown == [Path(capsys.readouterr().out.strip()).as_uri()]
