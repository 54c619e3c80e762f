"""A run's record as JSON values and back: for a bisect's journal, the run store, and reports. Secrets are masked."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from lossbisect.cause import Cause
from lossbisect.plain_values import mapping_of, number_of, sequence_of, string_or_none
from lossbisect.redact import redact, redact_variables, redact_words
from lossbisect.train.types import Lane, Outcome, Provenance, RunRecord, RunSpec, Sources, TrainerName

__all__ = ["record_from_json", "record_to_json"]


def record_to_json(record: RunRecord) -> dict[str, object]:
    """A run as JSON values; `record_from_json` gives the same run back, apart from masked secrets."""
    spec, sources = record.spec, record.spec.sources
    return {
        "spec": {
            "sources": {
                "mcore": _text(sources.mcore),
                "bridge": _text(sources.bridge),
                "mcore_commit": sources.mcore_commit,
                "bridge_commit": sources.bridge_commit,
                "is_ours": sources.is_ours,
                "stands_for": sources.stands_for,
            },
            "recipe": spec.recipe,
            "trainer": spec.trainer.value,
            "lane": spec.lane.value,
            "python": str(spec.python),
            "timeout_s": spec.timeout_s,
            "env": redact_variables(spec.env),
            "executor": redact(spec.executor),
        },
        "out": str(record.out),
        "argv": list(redact_words(record.argv)),
        "outcome": record.outcome.value,
        "reason": redact(record.reason),
        "exit_code": record.exit_code,
        "duration_s": record.duration_s,
        "provenance": None if record.provenance is None else asdict(record.provenance),
        "cause": None if record.cause is None else record.cause.value,
        "stored_as": record.stored_as,
    }


def record_from_json(row: Mapping[str, object]) -> RunRecord:
    """The run that `record_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: The row isn't one.
    """
    spec = mapping_of(row["spec"])
    sources = mapping_of(spec["sources"])
    return RunRecord(
        spec=RunSpec(
            sources=Sources(
                mcore=_path(sources["mcore"]),
                bridge=_path(sources["bridge"]),
                mcore_commit=string_or_none(sources["mcore_commit"]),
                bridge_commit=string_or_none(sources["bridge_commit"]),
                is_ours=bool(sources.get("is_ours", False)),
                stands_for=string_or_none(sources.get("stands_for")),
            ),
            recipe=str(spec["recipe"]),
            trainer=TrainerName(str(spec["trainer"])),
            lane=Lane(str(spec["lane"])),
            python=Path(str(spec["python"])),
            timeout_s=number_of(spec["timeout_s"]),
            env={key: str(value) for key, value in mapping_of(spec["env"]).items()},
            executor=str(spec.get("executor", "local")),
        ),
        out=Path(str(row["out"])),
        argv=tuple(str(word) for word in sequence_of(row["argv"])),
        outcome=Outcome(str(row["outcome"])),
        reason=str(row["reason"]),
        exit_code=None if row["exit_code"] is None else int(number_of(row["exit_code"])),
        duration_s=number_of(row["duration_s"]),
        provenance=None if row["provenance"] is None else Provenance(**mapping_of(row["provenance"])),  # type: ignore[arg-type]
        cause=None if row.get("cause") is None else Cause(str(row["cause"])),
        stored_as=string_or_none(row.get("stored_as")),
    )


def _path(value: object) -> Path | None:
    return None if value is None else Path(str(value))


def _text(value: Path | None) -> str | None:
    return None if value is None else str(value)
