"""Every log under `fixtures/` against the table beside it, which was written from the log's own text."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lossbisect import errors
from lossbisect.parsers import read_log
from lossbisect.schema import OWN_COLUMNS

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOGS = sorted(path for folder in ("logs", "real") for path in (FIXTURES / folder).glob("*.log"))


def test_fixtures_are_there() -> None:
    """The loader finds the logs, so that the tests below prove something."""
    assert len([path for path in LOGS if path.parent.name == "logs"]) >= 25
    assert len([path for path in LOGS if path.parent.name == "real"]) >= 5
    assert all(path.with_suffix(".json").exists() for path in LOGS)


def _is_equal(found: object, expected: object) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)
    if expected == "nan":
        return isinstance(found, float) and math.isnan(found)
    return bool(found == expected) and (found is None) == (expected is None)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_log_reads_as_its_table_says(path: Path) -> None:
    """Rows, evaluations, configuration, attempts, failure and notes of a log are what its text says, and no more."""
    expected: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    if "error" in expected:
        with pytest.raises(getattr(errors, expected["error"]), match=expected["says"]):
            read_log(path)
        return
    log = read_log(path)
    assert log.dialect == expected["dialect"]

    columns = expected["columns"]
    missing = [name for name in columns if name not in log.iterations.columns]
    assert not missing
    rows = log.iterations.select(columns).rows()
    assert len(rows) == len(expected["rows"])
    for found, wanted in zip(rows, expected["rows"], strict=True):
        differing = [(name, a, b) for name, a, b in zip(columns, found, wanted, strict=True) if not _is_equal(a, b)]
        assert not differing

    evaluations = log.validation.select("iteration", "attempt", "split", "metric", "value_nats").rows()
    assert [list(row) for row in evaluations] == expected["validation"]

    assert {key: log.config.get(key, "missing") for key in expected["config"]} == expected["config"]
    if expected["n_config"] is not None:
        assert len(log.config) == expected["n_config"]

    assert len(log.attempts) == len(expected["attempts"])
    for index, (attempt, (line_no, reason)) in enumerate(zip(log.attempts, expected["attempts"], strict=True)):
        assert attempt.index == index
        assert attempt.line_no == line_no
        assert reason in attempt.reason

    if expected["failure"] is None:
        assert log.failure is None
    else:
        assert log.failure is not None
        assert log.failure.kind == expected["failure"]["kind"]
        assert log.failure.line_no == expected["failure"]["line_no"]
        assert expected["failure"]["says"] in log.failure.text
    assert [note.kind for note in log.notes] == expected["notes"]


@pytest.mark.parametrize("columns", [["lm_loss"], ["grad_norm", "load_balancing_loss", "no_such_column"], []])
def test_some_columns_are_those_of_the_whole_table(columns: list[str]) -> None:
    """Asking for less changes no row, no value, no note."""
    for path in LOGS:
        if "error" in json.loads(path.with_suffix(".json").read_text()):
            continue
        whole, part = read_log(path), read_log(path, columns=columns)
        names = [name for name in whole.iterations.columns if name in {*OWN_COLUMNS, *columns}]
        assert part.iterations.equals(whole.iterations.select(names)), path
        assert (part.notes, part.attempts, part.failure) == (whole.notes, whole.attempts, whole.failure)
