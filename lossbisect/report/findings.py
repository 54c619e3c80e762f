"""Findings as text for a terminal, and as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby

from lossbisect.assist.findings import Finding, Severity, worst

__all__ = ["SCHEMA_VERSION", "findings_json", "findings_text", "headline"]

SCHEMA_VERSION = 1

_HEADS = {
    Severity.OK: "OK",
    Severity.NOTE: "OK",
    Severity.WARNING: "WARNINGS",
    Severity.PROBLEM: "PROBLEMS",
}


def headline(findings: Iterable[Finding]) -> str:
    """The first line: the verdict in capitals and how many findings of each kind there are."""
    findings = tuple(findings)
    counts = Counter(finding.severity for finding in findings)
    told = [
        f"{counts[severity]} {severity}" + ("s" if counts[severity] > 1 else "")
        for severity in reversed(Severity)
        if severity is not Severity.OK and counts[severity]
    ]
    return f"{_HEADS[worst(findings)]}: {', '.join(told) or 'nothing to report'}"


def findings_text(findings: Sequence[Finding]) -> str:
    """Several lines without colour and without a final newline; the first one is the headline."""
    blocks = [headline(findings)]
    for family, members in groupby(findings, key=lambda finding: finding.family):
        lines = [str(family)]
        for finding in members:
            lines += _lines(finding)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _lines(finding: Finding) -> list[str]:
    lines = [f"  {finding.severity:<8} {finding.where}", f"{'':11}{finding.what}"]
    if finding.severity is Severity.OK:
        return [f"  {finding.severity:<8} {finding.where}: {finding.what}"]
    if finding.advice:
        lines.append(f"{'':11}{finding.advice}")
    if finding.remedy:
        lines.append(f"{'':11}$ {finding.remedy}")
    return lines


def findings_json(findings: Sequence[Finding], **more: object) -> str:
    """One object, indented, without a final newline."""
    counts = Counter(finding.severity for finding in findings)
    report = {
        "schema_version": SCHEMA_VERSION,
        "worst": worst(findings).value,
        "counts": {severity.value: counts[severity] for severity in Severity},
        **more,
        "findings": [asdict(finding) for finding in findings],
    }
    return json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False)
