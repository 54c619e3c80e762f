"""All checks of a set-up: gather the facts, hand them to each family's judge."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lossbisect.assist.checkout import judge_checkout
from lossbisect.assist.compat import Together, together_at
from lossbisect.assist.experiments import default_folders, find_experiments, judge_experiments
from lossbisect.assist.findings import Family, Finding, Severity
from lossbisect.assist.gitfacts import Checkout, gather_checkout
from lossbisect.assist.imports import judge_imports
from lossbisect.assist.interpreter import Interpreter, ask_interpreter
from lossbisect.assist.machine import (
    gather_gpus,
    gather_slurm,
    gather_space,
    judge_gpus,
    judge_slurm,
    judge_space,
)
from lossbisect.assist.switch_record import read_moves
from lossbisect.assist.variables import judge_variables
from lossbisect.assist.versions import judge_versions
from lossbisect.errors import GitError, StateError, TrainerError
from lossbisect.train import cache_directory

__all__ = ["Examination", "examine"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Examination:
    """What doctor found.

    Attributes:
        checkout: The checkout; None where only the machine and the interpreter were looked at.
        together: What its commit asks for; None without a checkout.
        interpreter: The interpreter that was asked; None where it gave no answer.
        findings: Family by family.
    """

    checkout: Checkout | None
    together: Together | None
    interpreter: Interpreter | None
    findings: tuple[Finding, ...]


def examine(
    path: Path,
    *,
    python: Path,
    is_python_named: bool,
    at: str | None = None,
    needs_checkout: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Examination:
    """Look at a checkout, an interpreter and this machine. Nothing is changed.

    Args:
        path: A folder of the checkout.
        python: The interpreter that trains.
        is_python_named: The user named it, so what is wrong with it is a problem and no guess.
        at: Commit of the checkout whose versions count; None: HEAD.
        needs_checkout: Whether a path without a checkout is an error; else the machine alone is looked at.
        environment: Environment variables; None: this process's.

    Raises:
        GitError: There is no checkout, or no such commit.
    """
    environment = os.environ if environment is None else environment
    findings: list[Finding] = []
    checkout = together = None
    try:
        checkout = gather_checkout(path.resolve() if not needs_checkout else path)
        together = together_at(checkout.tree.root, at or "HEAD")
    except GitError as error:
        if needs_checkout or at is not None or checkout is not None:
            raise
        what = f"only the machine and the left experiments were looked at ({error})"
        findings.append(_note("no-checkout", Family.CHECKOUT, path.resolve(), what))
    if checkout is not None:
        findings += judge_checkout(checkout, switched_to=_switched_to(checkout))
    root = checkout.tree.root if checkout else path.resolve()
    findings += _experiments([root, *default_folders(Path.cwd())])
    try:
        interpreter = ask_interpreter(python, is_named=is_python_named, env=environment)
    except TrainerError as error:
        interpreter = None
        findings.append(_unasked(error, python, is_python_named))
    gpus = gather_gpus()
    if interpreter is not None and checkout is not None and together is not None:
        findings += judge_imports(checkout, interpreter, environment)
        findings += [*_own_environment(root, interpreter)]
        findings += judge_versions(together, interpreter, driver_cuda=gpus.cuda if gpus else None)
    findings += [*judge_space(gather_space(root, cache_directory())), *judge_gpus(gpus), *judge_slurm(gather_slurm())]
    findings += judge_variables(environment)
    order = list(Family)
    findings.sort(key=lambda finding: order.index(finding.family))
    return Examination(checkout=checkout, together=together, interpreter=interpreter, findings=tuple(findings))


def _experiments(places: list[Path]) -> list[Finding]:
    found = judge_experiments(find_experiments(dict.fromkeys(places)), now_s=time.time())
    if found:
        return list(found)
    what = "no folder of an earlier run that a next one would go on from"
    return [
        Finding(check="experiment", family=Family.EXPERIMENTS, severity=Severity.OK, where=str(places[0]), what=what)
    ]


def _switched_to(checkout: Checkout) -> str | None:
    """The commit that 'lossbisect mcore' last switched to."""
    if checkout.submodule is None:
        return None
    from contextlib import closing

    from lossbisect.bisect.repository import open_repository

    with closing(open_repository(checkout.submodule.root)) as repo, suppress(StateError):
        moves = read_moves(Path(repo.git_dir))
        return moves[-1].after if moves else None
    return None


def _own_environment(root: Path, interpreter: Interpreter) -> Iterator[Finding]:
    """A checkout with an environment of its own, when another one was asked."""
    own = root / ".venv" / "bin" / "python"
    if own.exists() and not interpreter.is_named and interpreter.prefix.resolve() != own.parents[1].resolve():
        what = f"the checkout has an environment of its own, and {interpreter.executable} was asked instead"
        yield Finding(
            check="other-environment",
            family=Family.IMPORTS,
            severity=Severity.NOTE,
            where=str(own.parents[1]),
            what=what,
            remedy=f"lossbisect doctor {root} --python {own}",
        )


def _unasked(error: TrainerError, python: Path, is_named: bool) -> Finding:
    severity = Severity.PROBLEM if is_named else Severity.WARNING
    return Finding(
        check="interpreter", family=Family.IMPORTS, severity=severity, where=str(python), what=str(error).rstrip(".")
    )


def _note(check: str, family: Family, where: Path, what: str) -> Finding:
    return Finding(check=check, family=family, severity=Severity.NOTE, where=str(where), what=what.rstrip("."))
