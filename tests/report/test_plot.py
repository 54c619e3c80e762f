"""A judgement as a picture."""

import math
from pathlib import Path

import pytest

from lossbisect.compare import compare_logs
from lossbisect.report.plot import EXTENSIONS, check_plot_path, draw
from tests.compare.logs import make_log

SIGNATURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_each_format_is_written(tmp_path: Path, extension: str) -> None:
    """The extension decides."""
    path = tmp_path / f"loss{extension}"
    draw(compare_logs(make_log([5.0, 4.0, 3.0]), make_log([5.0, 4.0, 3.5])), path)
    assert path.read_bytes().startswith(SIGNATURES[extension])


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        ([5.0], [5.0]),
        ([5.0], [6.0]),
        ([5.0] * 4, [5.0] * 4),
        ([5.0, math.nan, 3.0], [5.0, 4.0, math.inf]),
        ([math.nan] * 3, [math.nan] * 3),
        ([5.0, None, 3.0], [5.0, 4.0, None]),
        ([0.0] * 3, [0.0, 1e-30, 1e30]),
        ([-1.0, -2.0, -3.0], [-1.0, -2.0, 3.0]),
    ],
)
@pytest.mark.parametrize("tolerance", [None, 0.0, 1e-3])
def test_odd_curves_are_drawn(
    tmp_path: Path, baseline: list[float | None], candidate: list[float | None], tolerance: float | None
) -> None:
    """One row, nothing finite, holes, zeros and signs: a picture, no warning, no error."""
    judgement = compare_logs(make_log(baseline), make_log(candidate), tolerance=tolerance)
    draw(judgement, tmp_path / "loss.png")
    assert (tmp_path / "loss.png").stat().st_size > 5_000


def test_long_curve_keeps_its_spike_and_stays_small(tmp_path: Path) -> None:
    """A hundred thousand rows are thinned to their extremes."""
    base = [5.0] * 100_000
    judgement = compare_logs(make_log(base), make_log([*base[:70_000], 9.0, *base[70_001:]]))
    path = tmp_path / "loss.svg"
    draw(judgement, path)
    assert path.stat().st_size < 2_000_000


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
