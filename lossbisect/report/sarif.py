"""A triage as SARIF 2.1.0, which GitHub's code scanning reads."""

import json

from lossbisect import __version__
from lossbisect.report.triage import case_name, case_text
from lossbisect.triage.types import CaseReport, Kind, TriageReport

__all__ = ["triage_sarif"]

_LEVELS = {
    Kind.REGRESSION: "error",
    Kind.IMPROVEMENT: "warning",
    Kind.BROKEN: "error",
    Kind.FLAKY: "warning",
    Kind.UNDECIDED: "warning",
    Kind.ENVIRONMENT: "note",
    Kind.ACKNOWLEDGED: "note",
}
_RULES = {
    Kind.REGRESSION: "A commit moved the loss",
    Kind.IMPROVEMENT: "A commit lowered the loss",
    Kind.BROKEN: "A training doesn't run",
    Kind.FLAKY: "A training doesn't repeat itself",
    Kind.UNDECIDED: "Nothing can be said of a training",
    Kind.ENVIRONMENT: "The environment moved the loss",
    Kind.ACKNOWLEDGED: "A commit moved the loss on purpose",
}


def triage_sarif(report: TriageReport) -> str:
    """One result for each training that isn't ok. SARIF wants a file: it is the package that was trained."""
    kinds = list(_LEVELS)
    rules = [
        {"id": _id(kind), "shortDescription": {"text": _RULES[kind]}, "defaultConfiguration": {"level": _LEVELS[kind]}}
        for kind in kinds
    ]
    results = [_result(case, kinds) for case in report.cases if case.kind is not Kind.OK]
    driver = {"name": "lossbisect", "version": __version__, "rules": rules}
    told = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(told, indent=2, allow_nan=False) + "\n"


def _result(case: CaseReport, kinds: list[Kind]) -> dict[str, object]:
    where = {"artifactLocation": {"uri": "megatron/core/__init__.py"}, "region": {"startLine": 1}}
    culprit = case.blame.commits[0].sha if case.blame and case.blame.commits else case.point.mcore
    return {
        "ruleId": _id(case.kind),
        "ruleIndex": kinds.index(case.kind),
        "level": _LEVELS[case.kind],
        "message": {"text": _printable(case_text(case))},
        "locations": [{"physicalLocation": where}],
        "partialFingerprints": {"lossbisect/v1": f"{case_name(case)} {case.kind} {culprit}"},
    }


def _id(kind: Kind) -> str:
    return f"loss/{kind.value.replace(' ', '-')}"


def _printable(text: str) -> str:
    """SARIF's plain text knows one markup, ``[text](number)``, whose brackets are escaped."""
    kept = "".join(mark if mark.isprintable() or mark == "\n" else " " for mark in text)
    return kept.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
