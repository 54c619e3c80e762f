"""Our own full-precision scalars."""

import json
import math
from pathlib import Path

import pytest

from lossbisect.errors import ParseError
from lossbisect.parsers import LossKind, read_log


def write(folder: Path, *items: object, tail: str = "") -> Path:
    """A scalars file of these objects, one a line."""
    path = folder / "scalars.ndjson"
    path.write_text("".join(f"{json.dumps(item)}\n" for item in items) + tail)
    return path


def scalar(tag: str, iteration: int, value: float | None, **more: str) -> dict[str, object]:
    """One line's object."""
    return {"tag": tag, "iteration": iteration, "value": value, **more}


def test_tags_become_columns_of_full_precision(tmp_path: Path) -> None:
    """One row an iteration, rising, values to the last bit, known tags under the schema's names."""
    path = write(
        tmp_path,
        scalar("lm loss", 2, 10.37346),
        scalar("lm loss", 1, 10.37740135192871),
        scalar("grad-norm", 1, 0.84),
        scalar("learning-rate", 1, 3e-3),
        scalar("batch-size", 1, 8),
        scalar("iteration-time", 1, 0.33),
        scalar("lm loss vs samples", 8, 10.37740135192871),
        scalar("attempt", 1, 5.0),
    )
    log = read_log(path)
    assert (log.dialect, log.loss_kind, log.loss_quantum_rel) == ("lossbisect", LossKind.PER_ITERATION, 0.0)
    names = ["iteration", "attempt", "window", "lm_loss", "grad_norm", "learning_rate", "global_batch_size", "line_no"]
    assert log.iterations.select(names).rows() == [
        (1, 0, 1, 10.37740135192871, 0.84, 3e-3, 8, 2),
        (2, 0, 1, 10.37346, None, None, None, 1),
    ]
    assert log.iterations["iteration_time"].to_list() == [0.33, None]
    assert log.iterations["logged_attempt"].to_list() == [5.0, None]
    assert "lm_loss_vs_samples" not in log.iterations.columns


def test_later_line_wins(tmp_path: Path) -> None:
    """A resumed writer overwrites what it writes again."""
    log = read_log(write(tmp_path, scalar("lm loss", 1, 1.0), scalar("lm loss", 1, 2.0)))
    assert log.iterations["lm_loss"].to_list() == [2.0]


def test_nonfinite_values_are_told_apart(tmp_path: Path) -> None:
    """JSON has no NaN: null says which one it was."""
    items = [scalar("lm loss", n, None, nonfinite=kind) for n, kind in enumerate(("nan", "inf", "-inf"), start=1)]
    nan, inf, minus = read_log(write(tmp_path, *items)).iterations["lm_loss"].to_list()
    assert math.isnan(nan)
    assert (inf, minus) == (math.inf, -math.inf)


def test_cut_last_line_is_left_out(tmp_path: Path) -> None:
    """A writer killed in mid-line loses that line only."""
    log = read_log(write(tmp_path, scalar("lm loss", 1, 1.0), tail='{"tag": "lm loss", "iteration": 2, "val'))
    assert log.iterations["iteration"].to_list() == [1]
    assert [(note.kind, note.line_no) for note in log.notes] == [("cut-row", 2)]


@pytest.mark.parametrize(
    "line",
    [
        '{"tag": "lm loss", "iteration": 2, "val',
        "[1]",
        "[" * 5000,
        '{"tag": 5, "iteration": 1, "value": 1}',
        '{"tag": "x", "iteration": 1.5, "value": 1}',
        '{"tag": "x", "iteration": 1, "value": "1"}',
        '{"tag": "x", "iteration": 1, "value": null, "nonfinite": "no"}',
        json.dumps(scalar("x", 2**70, 1.0)),
        json.dumps({"tag": "x", "iteration": 1, "value": 10**400}),
    ],
)
def test_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    """A line in the middle that isn't such an object is an error with its number."""
    path = write(tmp_path, scalar("lm loss", 1, 1.0), tail=f"{line}\n" + json.dumps(scalar("lm loss", 2, 1.0)) + "\n")
    with pytest.raises(ParseError, match=r"scalars.ndjson:2: "):
        read_log(path)
