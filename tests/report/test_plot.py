"""A judgement as a picture."""

import math
from pathlib import Path

import pytest

from lossbisect.compare import compare_logs
from lossbisect.report.plot import EXTENSIONS, check_plot_path, draw, draw_many
from tests.browser.made import evil_pair, pair
from tests.compare.logs import make_log

SIGNATURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_each_format_is_written(tmp_path: Path, extension: str) -> None:
    """The extension decides."""
    path = tmp_path / f"loss{extension}"
    draw(compare_logs(make_log([5.0, 4.0, 3.0]), make_log([5.0, 4.0, 3.5])), path)
    assert path.read_bytes().startswith(SIGNATURES[extension])


@pytest.mark.parametrize(
    ("baseline", "candidate", "tolerance"),
    [
        ([5.0], [5.0], 0.0),
        ([5.0], [6.0], None),
        ([5.0] * 4, [5.0] * 4, 0.0),
        ([5.0, math.nan, 3.0], [5.0, 4.0, math.inf], None),
        ([math.nan] * 3, [math.nan] * 3, 1e-3),
        ([5.0, None, 3.0], [5.0, 4.0, None], 0.0),
        ([0.0] * 3, [0.0, 1e-30, 1e30], None),
        ([-1.0, -2.0, -3.0], [-1.0, -2.0, 3.0], 1e-3),
    ],
)
def test_odd_curves_are_drawn(
    tmp_path: Path, baseline: list[float | None], candidate: list[float | None], tolerance: float | None
) -> None:
    """One row, nothing finite, holes, zeros and signs: a picture, no warning, no error."""
    judgement = compare_logs(make_log(baseline), make_log(candidate), tolerance=tolerance)
    draw(judgement, tmp_path / "loss.png")
    assert (tmp_path / "loss.png").stat().st_size > 5_000


def test_long_curve_keeps_its_spike_and_stays_small(tmp_path: Path) -> None:
    """Twenty thousand rows are thinned to their extremes."""
    base = [5.0] * 20_000
    judgement = compare_logs(make_log(base), make_log([*base[:14_000], 9.0, *base[14_001:]]))
    path = tmp_path / "loss.svg"
    draw(judgement, path)
    assert path.stat().st_size < 1_000_000


def test_nothing_global_is_touched(tmp_path: Path) -> None:
    """The object interface leaves pyplot, which holds global state, alone."""
    import sys

    draw(compare_logs(make_log([5.0] * 3), make_log([5.0] * 3)), tmp_path / "loss.png")
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.parametrize("name", ["loss", "loss.gif", "loss.txt", "folder.png", "missing/loss.png"])
def test_path_that_cannot_be_drawn_to_is_refused(tmp_path: Path, name: str) -> None:
    """Before any work is done."""
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ValueError, match=r"must end in|is a folder|does not exist"):
        check_plot_path(tmp_path / name)


def _svg(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_witnesses_that_differ_stand_below(tmp_path: Path) -> None:
    """The gradient norm has a panel of its own, with unit and first divergence named; what is equal has none."""
    draw(pair(), tmp_path / "loss.svg")
    drawn = _svg(tmp_path / "loss.svg")
    for text in ("lm loss (nats per token)", "relative difference", "grad norm", "diverges from iteration 20 on"):
        assert text in drawn
    assert "learning rate" not in drawn


def test_several_runs_share_one_picture(tmp_path: Path) -> None:
    """Each with its name, its verdict and a mark of its own, not only a colour."""
    draw_many([pair(path="one.log", since=99), pair(path="two.log", since=5)], tmp_path / "loss.svg")
    drawn = _svg(tmp_path / "loss.svg")
    assert all(text in drawn for text in ("1 run diverged, 1 run same", "one.log  (same)", "two.log  (diverged)"))


def test_evil_names_are_drawn_as_text(tmp_path: Path) -> None:
    """No mathematics, no markup, no control character of a file's name or a setting reaches the picture."""
    draw(evil_pair(), tmp_path / "loss.svg")
    drawn = _svg(tmp_path / "loss.svg")
    assert "<script" not in drawn
    assert not {"\x1b", "\x07", "\u202e"} & set(drawn)
