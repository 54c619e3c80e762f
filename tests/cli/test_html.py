"""``--html`` and ``--plot`` of the commands: what is written, and what is said."""

from pathlib import Path

import pytest

from lossbisect.cli import main
from lossbisect.report.html.correlate import correlate_page
from lossbisect.report.html.render import page_html
from tests.bisect import support
from tests.bisect.support import make_history, make_record
from tests.browser.made import ORIGIN, pair

REAL = Path(__file__).parents[2] / "fixtures" / "real"
MEGATRON = str(REAL / "mlm-main-2026-08-1rank.log")
ADAM_EPS = str(REAL / "mlm-main-2026-08-1rank-adam-eps-1e-5.log")
BRIDGE = str(REAL / "bridge-main-2026-08-1rank.log")


def run(*arguments: str) -> int:
    """The exit code of ``lossbisect``."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_compare_writes_a_page_beside_its_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code stays the verdict's; the page says how it was made, notes with their lines included."""
    page = tmp_path / "loss.html"
    assert run("compare", MEGATRON, ADAM_EPS, "--html", str(page)) == 1
    assert capsys.readouterr().out.startswith("DIVERGED")
    text = page.read_text(encoding="utf-8")
    assert f"lossbisect compare {MEGATRON} {ADAM_EPS} --html {page}" in text
    assert "adam_eps" in text
    assert "baseline, line 1021: Iteration 2 was printed as the mean" in text


def test_compare_of_many_makes_one_page_and_one_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several candidates stand in one picture."""
    files = [str(tmp_path / name) for name in ("all.html", "all.svg")]
    assert run("compare", MEGATRON, BRIDGE, ADAM_EPS, "--html", files[0], "--plot", files[1]) == 1
    assert "candidate" in capsys.readouterr().out
    assert "Of 2 runs 1 diverged, 1 same." in Path(files[0]).read_text(encoding="utf-8")
    drawn = Path(files[1]).read_text(encoding="utf-8")
    assert all(Path(path).name in drawn for path in (MEGATRON, BRIDGE, ADAM_EPS))


def test_bisect_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every run is on it, and a skipped one's log opens; the command goes on with the bisect."""
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", support.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    shas = make_history(tmp_path / "mlm", [10.25] * 3 + [None] + [10.25, 10.25, 10.26, 10.26])
    page = tmp_path / "bisect.html"
    words = ("--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main", "--jobs", "1")
    assert run("bisect", *words, "--html", str(page)) == 0
    assert f"Wrote {page}" in capsys.readouterr().err
    text = page.read_text(encoding="utf-8")
    assert f"{shas[6][:10]} is the first bad commit" in text
    assert "No module named &#39;nothing_of_that_name&#39;" in text
    assert "lossbisect bisect --resume" in text


@pytest.mark.parametrize(
    ("page", "message"),
    [("loss.txt", "must end in .html"), ("no-such-folder/loss.html", "does not exist"), (".", "must end in .html")],
)
def test_page_that_cannot_be_written_exits_2(page: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before any work is done, with nothing on stdout."""
    assert run("compare", MEGATRON, ADAM_EPS, "--html", page) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err


def test_correlation_says_what_ran(tmp_path: Path) -> None:
    """The page of a correlation is a comparison's, with both runs' commits and commands."""
    records = [make_record("a" * 40, tmp_path / side) for side in ("mlm", "bridge")]
    text = page_html(correlate_page(pair(), records, ORIGIN))
    assert "lossbisect correlate" in text
    assert "What ran" in text
    assert "0.19.0 aaaaaaaaaa" in text
    assert "python pretrain_gpt.py" in text
