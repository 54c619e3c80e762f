"""A triage as JUnit XML, which GitLab, Jenkins and most others read."""

from xml.etree import ElementTree  # it only writes here

from lossbisect.report.triage import case_name, case_text
from lossbisect.triage.types import CaseReport, Kind, TriageReport

__all__ = ["triage_junit"]

_FAILURES = frozenset({Kind.REGRESSION, Kind.IMPROVEMENT})
_ERRORS = frozenset({Kind.BROKEN, Kind.UNDECIDED, Kind.FLAKY})


def triage_junit(report: TriageReport) -> str:
    """One test case for each training. A loss that moved is a failure; what can't be said is an error, never a pass."""
    failures = sum(case.kind in _FAILURES for case in report.cases)
    errors = sum(case.kind in _ERRORS for case in report.cases)
    counts = {"tests": str(len(report.cases)), "failures": str(failures), "errors": str(errors)}
    root = ElementTree.Element("testsuites", {"name": "lossbisect", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": f"lossbisect triage {report.commit.sha}", **counts})
    for case in report.cases:
        _add(suite, case)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _add(suite: ElementTree.Element, case: CaseReport) -> None:
    test = ElementTree.SubElement(suite, "testcase", {"classname": "lossbisect", "name": _legal(case_name(case))})
    told = _legal(case_text(case))
    if case.kind in _FAILURES | _ERRORS:
        tag = "failure" if case.kind in _FAILURES else "error"
        found = ElementTree.SubElement(test, tag, {"type": case.kind.value, "message": _legal(case.reason)})
        found.text = told
    else:
        ElementTree.SubElement(test, "system-out").text = told


def _legal(text: str) -> str:
    """Text without the characters that XML 1.0 has no way to write."""
    return "".join(mark if mark in "\n\t" or mark.isprintable() else " " for mark in text)
