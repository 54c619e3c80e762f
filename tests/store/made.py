"""Runs and keys made up for the store's tests."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lossbisect.store.types import Environment, RunKey
from lossbisect.train.types import Lane, Outcome, Provenance, RunRecord, RunSpec, Sources, TrainerName

COMMIT = "a" * 40
CURVE = (10.5, 10.25, 9.875)
ENVIRONMENT = Environment(
    python="3.12.1",
    packages={"torch": "2.15.0", "numpy": "2.3.5"},
    processor="x86_64 made up",
    driver=None,
    gpu=None,
    image=None,
    variables={"OMP_NUM_THREADS": "1"},
    code="c" * 64,
)


def made_key(commit: str = COMMIT, environment: Environment = ENVIRONMENT, recipe: str = "one") -> RunKey:
    """The key of a run on the CPU lane by Megatron-LM."""
    return RunKey(
        mcore_commit=commit,
        bridge_commit=None,
        recipe={"layers": 2, "kind": recipe},
        trainer=TrainerName.MLM,
        lane=Lane.CPU,
        settings={"env": {}},
        settings_digest="d" * 64,
        environment=environment,
    )


def made_run(out: Path, key: RunKey, losses: Sequence[float] = CURVE, console: str = "training\n") -> RunRecord:
    """A finished run of a key, with its files in ``out``, which says of itself what the key says."""
    out.mkdir(parents=True)
    rows = [{"tag": "lm loss", "iteration": number, "value": loss} for number, loss in enumerate(losses, start=1)]
    (out / "scalars.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (out / "console.log").write_text(console)
    environment = key.environment
    return RunRecord(
        spec=RunSpec(
            sources=Sources(mcore=out / "mcore", mcore_commit=key.mcore_commit, is_ours=True),
            recipe="vanilla-cpu",
            trainer=key.trainer,
            lane=key.lane,
            python=Path("/usr/bin/python3"),
        ),
        out=out,
        argv=("python", "pretrain_gpt.py"),
        outcome=Outcome.FINISHED,
        reason=f"{len(losses)} iterations",
        exit_code=0,
        duration_s=7.0,
        provenance=Provenance(
            megatron_core_file=str(out / "mcore/megatron/core/__init__.py"),
            megatron_core_version="0.19.0",
            mcore_commit=key.mcore_commit,
            is_clean=True,
            megatron_bridge_file=None,
            python=environment.python,
            torch="2.15.0",
            lane="cpu",
            processor=environment.processor,
            image=environment.image,
            packages=environment.packages,
            variables={**environment.variables, "NCCL_SET_BY_THE_TRAINER": "1"},
        ),
    )


def changed(record: RunRecord, **what: object) -> RunRecord:
    """The record with other provenance."""
    assert record.provenance is not None
    return replace(record, provenance=replace(record.provenance, **what))  # type: ignore[arg-type]
