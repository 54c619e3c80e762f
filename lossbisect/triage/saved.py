"""What a triage said, kept beside its runs: ``<cache>/triage/<id>/report.json``, whole or not at all."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from lossbisect.bisect.types import CommitInfo
from lossbisect.errors import StoreError
from lossbisect.plain_values import mapping_of, number_of, sequence_of, string_or_none
from lossbisect.train.types import Lane, TrainerName
from lossbisect.triage.types import (
    Acknowledgement,
    Axis,
    Blame,
    Case,
    CaseReport,
    Curve,
    Kind,
    Point,
    TriageReport,
)

__all__ = ["find_report", "read_report", "report_ids", "save_report"]

_NAME = "report.json"
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def save_report(report: TriageReport, folder: Path) -> None:
    """Keep a report in a triage's own folder.

    Raises:
        StoreError: The folder can't be written.
    """
    text = json.dumps(_plain(asdict(report)), allow_nan=False, separators=(",", ":"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{_NAME}.{os.getpid()}"
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(folder / _NAME)
    except OSError as error:
        raise StoreError(f"{folder}: the report can't be kept: {error.strerror}. Make room there.") from error


def report_ids(root: Path) -> list[str]:
    """The triages that have a report, the oldest first.

    Args:
        root: The cache directory.
    """
    return sorted(path.parent.name for path in (root / "triage").glob(f"*/{_NAME}"))


def find_report(root: Path, name: str) -> str | None:
    """The id that is this name, or the only one that has it as a part; None: there is none, or several."""
    known = report_ids(root)
    found = [each for each in known if each == name] or [each for each in known if name and name in each]
    return found[0] if len(found) == 1 else None


def read_report(root: Path, name: str) -> TriageReport:
    """A report that was kept.

    Args:
        root: The cache directory.
        name: One of `report_ids`.

    Raises:
        StoreError: It isn't there, or can't be read.
    """
    file = root / "triage" / name / _NAME
    try:
        return _report(mapping_of(json.loads(file.read_text(encoding="utf-8"))))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file}: the report can't be read: {error!r}. Run the triage again.") from error


def _plain(value: object) -> object:
    """Values that JSON has: a number that isn't finite is its name, a time ISO 8601."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value


def _number(value: object) -> float:
    return _NOT_FINITE[value] if isinstance(value, str) else number_of(value)


def _report(row: Mapping[str, object]) -> TriageReport:
    bridge, at = row["bridge"], row["at"]
    return TriageReport(
        commit=_commit(row["commit"]),
        point=_point(row["point"]),
        repository=string_or_none(row["repository"]),
        cases=tuple(_case_report(mapping_of(case)) for case in sequence_of(row["cases"])),
        bridge=None if bridge is None else _commit(bridge),
        bridge_repository=string_or_none(row["bridge_repository"]),
        is_bridges=bool(row["is_bridges"]),
        at=None if at is None else datetime.fromisoformat(str(at)),
    )


def _case_report(row: Mapping[str, object]) -> CaseReport:
    case, given = mapping_of(row["case"]), row["acknowledgement"]
    trainer = string_or_none(case["trainer"])
    return CaseReport(
        case=Case(
            recipe=str(case["recipe"]),
            lane=Lane(str(case["lane"])),
            trainer=TrainerName(trainer) if trainer else None,
            repeats=int(number_of(case["repeats"])),
            tolerance=number_of(case["tolerance"]),
            metric=str(case["metric"]),
            owners=tuple(map(str, sequence_of(case["owners"]))),
        ),
        trainer=TrainerName(str(row["trainer"])),
        point=_point(row["point"]),
        reference=None if row["reference"] is None else _point(row["reference"]),
        kind=Kind(str(row["kind"])),
        reason=str(row["reason"]),
        is_news=bool(row["is_news"]),
        runs=int(number_of(row["runs"])),
        blame=None if row["blame"] is None else _blame(mapping_of(row["blame"])),
        acknowledgement=None if given is None else _acknowledgement(mapping_of(given)),
        notes=tuple(map(str, sequence_of(row["notes"]))),
        curve=_curve(row["curve"]),
        reference_curve=_curve(row["reference_curve"]),
        noise_rel=_number(row["noise_rel"]),
    )


def _curve(value: object) -> Curve:
    return {int(iteration): _number(each) for iteration, each in mapping_of(value).items()}


def _point(value: object) -> Point:
    row = mapping_of(value)
    return Point(mcore=str(row["mcore"]), bridge=string_or_none(row["bridge"]))


def _blame(row: Mapping[str, object]) -> Blame:
    return Blame(
        axis=Axis(str(row["axis"])),
        commits=tuple(map(_commit, sequence_of(row["commits"]))),
        is_confirmed=bool(row["is_confirmed"]),
        reason=str(row["reason"]),
        bisect_id=string_or_none(row["bisect_id"]),
    )


def _acknowledgement(row: Mapping[str, object]) -> Acknowledgement:
    at = datetime.fromisoformat(str(row["at"]))
    return Acknowledgement(commit=str(row["commit"]), reason=str(row["reason"]), by=str(row["by"]), at=at)


def _commit(value: object) -> CommitInfo:
    row = mapping_of(value)
    return CommitInfo(
        sha=str(row["sha"]),
        parents=tuple(map(str, sequence_of(row["parents"]))),
        author=str(row["author"]),
        email=str(row["email"]),
        date=str(row["date"]),
        subject=str(row["subject"]),
        pull_request=string_or_none(row["pull_request"]),
    )
