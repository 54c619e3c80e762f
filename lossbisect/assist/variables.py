"""Environment variables that change what a training computes. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lossbisect.assist.findings import Family, Finding, Severity
from lossbisect.train.inside import fingerprint

__all__ = ["judge_variables"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    """What it means that a variable is set.

    Attributes:
        pattern: Names it is about.
        harmless: Values that mean nothing or the good thing.
        severity: Of any other value.
        what: What it does, after "NAME=VALUE".
        is_unset_the_remedy: Whether to say how to get rid of it.
    """

    pattern: str
    what: str
    harmless: frozenset[str] = frozenset()
    severity: Severity = Severity.NOTE
    is_unset_the_remedy: bool = False


_OFF = frozenset({"", "0"})
_RULES = (
    _Rule(
        pattern=r"TORCH_NCCL_AVOID_RECORD_STREAMS",
        what="memory may be used again too early with virtual pipeline stages, which gave wrong losses",
        harmless=_OFF,
        severity=Severity.WARNING,
        is_unset_the_remedy=True,
    ),
    _Rule(
        pattern=r"PYTHONOPTIMIZE",
        what="Python leaves out assertions, those of Megatron-Core among them",
        harmless=frozenset({""}),
        severity=Severity.WARNING,
        is_unset_the_remedy=True,
    ),
    _Rule(
        pattern=r"RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT",
        what="left over from a launcher: a run without one waits for ranks that never come",
        harmless=frozenset({""}),
        severity=Severity.WARNING,
        is_unset_the_remedy=True,
    ),
    _Rule(
        pattern=r"NVTE_ALLOW_NONDETERMINISTIC_ALGO",
        what="Transformer Engine may take kernels that don't repeat themselves",
        harmless=frozenset({"0"}),
    ),
    _Rule(pattern=r"CUBLAS_WORKSPACE_CONFIG", what="sets how cuBLAS orders its additions"),
    _Rule(pattern=r"CUDA_DEVICE_MAX_CONNECTIONS", what="sets how kernels overlap with communication"),
    _Rule(
        pattern=r"NVIDIA_TF32_OVERRIDE|TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        what="sets whether float32 products are rounded to TF32",
        severity=Severity.WARNING,
    ),
    _Rule(pattern=r"NVTE_\w+", what="chooses kernels of Transformer Engine"),
    _Rule(
        pattern=r"NCCL_(ALGO|PROTO|NVLS_ENABLE|COLLNET_ENABLE|MIN_NCHANNELS|MAX_NCHANNELS)",
        what="sets the order in which NCCL adds over ranks",
    ),
    _Rule(pattern=r"(OMP|MKL|OPENBLAS)_NUM_THREADS", what="sets the order of additions on a CPU"),
    _Rule(pattern=r"PYTORCH_(CUDA_)?ALLOC_CONF", what="sets how memory is handed out; losses stay the same"),
    _Rule(pattern=r"PYTORCH_\w+|TORCHINDUCTOR_\w+|TORCH_COMPILE_\w+", what="changes how torch computes"),
    _Rule(pattern=r"LD_PRELOAD", what="replaces functions of libraries"),
    _Rule(
        pattern=r"PYTHONDONTWRITEBYTECODE",
        what="Python compiles everything anew at each start, which is slow",
        harmless=frozenset({""}),
    ),
)

_OTHER = _Rule(pattern="", what="may change what a training computes")
"""For all that a run's fingerprint holds and no rule knows."""


def judge_variables(environment: Mapping[str, str]) -> tuple[Finding, ...]:
    """What is to be said about environment variables; `lossbisect.assist.imports` judges ``PYTHONPATH``.

    Variables that a launcher sets are no surprise under Slurm, whose own tell that it started this process.
    """
    found = []
    known = fingerprint.variables(environment)
    for name in sorted(environment):
        rule = next((rule for rule in _RULES if re.fullmatch(rule.pattern, name)), _OTHER if name in known else None)
        if rule is None or environment[name] in rule.harmless:
            continue
        if rule.severity is Severity.WARNING and "launcher" in rule.what and "SLURM_PROCID" in environment:
            continue
        found.append(_finding(name, known.get(name, environment[name]), rule))
    if not found:
        what = "none set that changes what a training computes"
        return (
            Finding(check="variable", family=Family.VARIABLES, severity=Severity.OK, where="environment", what=what),
        )
    return tuple(found)


def _finding(name: str, value: str, rule: _Rule) -> Finding:
    shown = value if len(value) <= 60 else value[:57] + "..."
    return Finding(
        check="variable",
        family=Family.VARIABLES,
        severity=rule.severity,
        where=name,
        what=f"is {shown!r}: {rule.what}",
        remedy=f"unset {name}" if rule.is_unset_the_remedy else None,
    )
