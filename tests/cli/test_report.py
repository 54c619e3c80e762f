"""``lossbisect report`` and ``open``: a bisect's page from what it left on the disk."""

from pathlib import Path

import pytest

from lossbisect.bisect import BisectResult, Event, EventKind, bisect_range
from lossbisect.bisect.recall import Unfinished, recall_bisect
from lossbisect.bisect.state import Journal
from lossbisect.cli import main
from lossbisect.train.executors import ExecutorOptions
from tests.bisect import support
from tests.bisect.support import make_history, snapshot
from tests.serve.made import make_report, make_run

LOSSES = [10.25] * 3 + [None] + [10.25, 10.25, 10.26, 10.26]
"""Commit 6 moves the loss; the first midpoint can't be imported."""


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs read their loss from the tree that they were given."""
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", support.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
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
        bisect_range(folder / "mlm", shas[0], "main", executor=ExecutorOptions(jobs=1), on_event=on_event)
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


@pytest.mark.parametrize(("display", "has_browser"), [(":0", True), (":0", False), (None, True)])
def test_open_shows_the_page(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    display: str | None,
    has_browser: bool,
) -> None:
    """In the browser; without a display or a browser its path is all there is, and nothing is started."""
    shown: list[str] = []

    def show(url: str) -> bool:
        shown.append(url)
        return has_browser

    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    if display:
        monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setattr("webbrowser.open", show)
    bisected(tmp_path)
    assert run("open") == 0
    said = capsys.readouterr()
    path = Path(said.out.strip())
    assert path.is_file()
    assert shown == ([path.as_uri()] if display else [])
    assert ("lossbisect serve" in said.err) is not (display is not None and has_browser)


def test_report_of_a_run_a_triage_and_a_bisect_as_text_and_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is found by a part of its name; the first line is the verdict, and the page has the same one."""
    root = tmp_path / "cache"
    stored, triage = make_run(root), make_report(root)
    bisected(tmp_path)
    bisect = next((root / "bisects").iterdir()).name
    for name, first in ((stored[-6:], stored), (triage[-4:], "REGRESSION"), (bisect, "FIRST BAD COMMIT")):
        assert run("report", name, "--text") == 0
        assert capsys.readouterr().out.startswith(first)
        assert run("report", name) == 0
        page = Path(capsys.readouterr().out.strip())
        assert "<h1" in page.read_text(encoding="utf-8")
        assert page.is_relative_to(root)
        assert not page.is_relative_to(root / "store")


def test_report_of_a_stopped_bisect_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How far it is, its runs, and how to go on."""
    bisected(tmp_path, stop_after=4)
    assert run("report", "--text") == 0
    out = capsys.readouterr().out
    assert out.startswith("UNFINISHED: After 4 runs")
    assert "lossbisect bisect --resume" in out


def test_a_name_that_means_several_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs share a part of their ids: both are named, none is chosen."""
    names = [make_run(tmp_path / "cache", number=number) for number in (1, 2)]
    assert run("report", names[0][:8]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in names)


def test_changelog_writes_a_page_with_each_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Verdict first, then each change with its first iteration, size and author, and its curves; also by 'report'."""
    shas = make_history(tmp_path / "mlm", [10.25, 10.25, 10.5, 10.5, 10.75])
    page = tmp_path / "changes.html"
    words = ("--repo", str(tmp_path / "mlm"), "--html", str(page))
    assert run("changelog", f"{shas[0]}..{shas[-1]}", *words) == 0
    text = page.read_text(encoding="utf-8")
    assert "2 changes" in text.split("</h1>")[0]
    for sha in (shas[2], shas[4]):
        assert f"{sha[:10]} Change number" in text
    assert "since iteration" in text
    assert text.count('class="charts"') == 2
    capsys.readouterr()
    assert run("report") == 0
    again = Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8")
    assert "2 changes" in again.split("</h1>")[0]
