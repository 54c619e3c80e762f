"""A judgement as JSON."""

import json
import math

from lossbisect.compare import compare_logs
from lossbisect.report.json import SCHEMA_VERSION, render_json
from tests.compare.logs import make_log


def _strict(text: str) -> dict[str, object]:
    def refuse(constant: str) -> object:
        raise ValueError(constant)

    loaded: dict[str, object] = json.loads(text, parse_constant=refuse)
    return loaded


def test_numbers_keep_full_precision() -> None:
    """What was read comes out again, bit for bit."""
    value = 10.123456789012345
    report = _strict(render_json(compare_logs(make_log([value] * 3), make_log([value] * 3))))
    assert report["schema_version"] == SCHEMA_VERSION
    assert report["verdict"] == "same"
    rows = report["rows"]
    assert isinstance(rows, list)
    assert [row["baseline"] for row in rows] == [value] * 3


def test_nan_and_missing_are_null_and_told_apart() -> None:
    """Strict JSON has no NaN; the state says what the null stands for."""
    judgement = compare_logs(make_log([5.0, 4.0, 3.0, 2.0]), make_log([5.0, math.nan, None, math.inf]))
    rows = _strict(render_json(judgement))["rows"]
    assert isinstance(rows, list)
    assert [row["candidate"] for row in rows] == [5.0, None, None, None]
    assert [row["candidate_state"] for row in rows] == ["finite", "NaN", "missing", "inf"]


def test_all_parts_of_the_evidence_are_there() -> None:
    """The keys that scripts may rely on."""
    report = _strict(render_json(compare_logs(make_log([5.0] * 3), make_log([5.0] * 3))))
    assert list(report) == [
        "schema_version",
        "verdict",
        "reason",
        "baseline",
        "candidate",
        "metric",
        "aligned_on",
        "noise",
        "difference",
        "witnesses",
        "config",
        "notes",
        "ends",
        "performance",
        "rule",
        "diagnoses",
        "rows",
    ]
