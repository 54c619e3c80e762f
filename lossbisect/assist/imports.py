"""Which Megatron an interpreter would import: the checkout's, or one that shadows it. Pure."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from lossbisect.assist.findings import Family, Finding, Severity
from lossbisect.assist.gitfacts import Checkout
from lossbisect.assist.interpreter import Interpreter
from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.bisect.repository import quoted

__all__ = ["checkout_paths", "judge_imports"]

_DISTRIBUTIONS = {"megatron.core": "megatron-core", "megatron.bridge": "megatron-bridge"}


def checkout_paths(checkout: Checkout) -> dict[str, Path]:
    """The folder that has to be on Python's path for each package of a checkout."""
    root = checkout.tree.root
    if checkout.kind == "megatron-lm":
        return {"megatron.core": root}
    return {"megatron.core": root / SUBMODULE, "megatron.bridge": root / "src"}


def judge_imports(checkout: Checkout, interpreter: Interpreter, environment: Mapping[str, str]) -> tuple[Finding, ...]:
    """What is to be said about the packages that shadow a checkout.

    Args:
        checkout: The checkout that a user means to train.
        interpreter: What imports it.
        environment: The user's environment variables.
    """
    entries = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    paths = checkout_paths(checkout)
    regular = _regular_package(interpreter, paths)
    if regular is not None:
        return (_hides_all(regular, interpreter, entries, paths),)
    found = _by_source(interpreter, paths)
    judged = [_judge(names, home, interpreter, entries, paths) for home, names in found.items()]
    return (*judged, *_missing_entries(entries))


def _by_source(interpreter: Interpreter, paths: Mapping[str, Path]) -> dict[Path | None, list[str]]:
    """The packages by the folder that they come from; the checkout's own and those that are nowhere under None."""
    found: dict[Path | None, list[str]] = {}
    for name, root in paths.items():
        origin = interpreter.origins.get(name)
        if origin is None or Path(origin).resolve().is_relative_to(root.resolve()):
            home = None if origin is None else root
        else:
            home = Path(origin).parents[2] if origin.endswith(".py") else Path(origin).parents[1]
        found.setdefault(home, []).append(name)
    return found


def _finding(
    check: str, severity: Severity, where: object, what: str, remedy: str | None = None, advice: str = ""
) -> Finding:
    return Finding(
        check=check,
        family=Family.IMPORTS,
        severity=severity,
        where=str(where),
        what=what,
        remedy=remedy,
        advice=advice,
    )


def _judge(
    names: list[str], home: Path | None, interpreter: Interpreter, entries: list[str], paths: Mapping[str, Path]
) -> Finding:
    """What it means that some packages come from a folder, or from nowhere."""
    told = " and ".join(names)
    export = _export(entries, paths)
    if home is None:
        what = f"{interpreter.executable} finds no {told}"
        advice = "lossbisect's own runs set the path themselves. For a training started by hand:"
        return _finding("not-on-path", Severity.NOTE, told, what, export, advice)
    if home in paths.values():
        return _finding("import", Severity.OK, told, f"imported from the checkout ({home})")
    via = next((entry for entry in entries if Path(entry).resolve() == home.resolve()), None)
    if via is not None:
        what = f"PYTHONPATH names {via}, which wins over the checkout"
        return _finding("path-shadow", Severity.PROBLEM, told, what, export)
    versions = [interpreter.versions.get(_DISTRIBUTIONS[name]) for name in names]
    numbers = ", ".join(version for version in versions if version)
    installed = f"what is installed in {home}" + (f" ({numbers})" if numbers else "")
    what = f"{interpreter.executable} imports {installed}, not the checkout"
    advice = "lossbisect's own runs set the path themselves and prove what they ran. For a training started by hand:"
    severity = Severity.PROBLEM if interpreter.is_named else Severity.WARNING
    return _finding("installed-shadow", severity, told, what, export, advice)


def _regular_package(interpreter: Interpreter, paths: Mapping[str, Path]) -> str | None:
    """File of a ``megatron`` with an ``__init__.py`` that isn't the checkout's: it hides every other ``megatron``."""
    origin = interpreter.origins.get("megatron")
    if origin is None or not origin.endswith(".py"):
        return None
    inside = any(Path(origin).resolve().is_relative_to(root.resolve()) for root in paths.values())
    return None if inside else origin


def _hides_all(file: str, interpreter: Interpreter, entries: list[str], paths: Mapping[str, Path]) -> Finding:
    home = Path(file).parents[1]
    what = "a 'megatron' package with an __init__.py of its own hides every other one, wherever the path names them"
    on_path = any(Path(entry).resolve() == home.resolve() for entry in entries)
    if on_path:
        return _finding("regular-megatron", Severity.PROBLEM, file, what, _export(entries, paths))
    move = f"mv {quoted(Path(file))} {quoted(Path(file + '.aside'))}"
    advice = f"It is part of {interpreter.prefix}; no PYTHONPATH helps, lossbisect's own runs are hit too."
    return _finding("regular-megatron", Severity.PROBLEM, file, what, move, advice)


def _export(entries: list[str], paths: Mapping[str, Path]) -> str:
    """The command that puts the checkout first and leaves out what holds another ``megatron``."""
    ours = [str(path) for path in paths.values()]
    others = [entry for entry in entries if entry not in ours and not (Path(entry) / "megatron").is_dir()]
    return f"export PYTHONPATH={shlex.quote(os.pathsep.join([*ours, *others]))}"


def _missing_entries(entries: list[str]) -> list[Finding]:
    missing = [entry for entry in entries if not Path(entry).exists()]
    if not missing:
        return []
    what = f"names {', '.join(missing)}, which isn't there"
    return [_finding("path-missing", Severity.NOTE, "PYTHONPATH", what)]
