"""What is installed against what a commit asks for. Pure."""

from lossbisect.assist.compat import Together
from lossbisect.assist.findings import Family, Finding, Severity
from lossbisect.assist.interpreter import Interpreter
from lossbisect.assist.pins import Pins

__all__ = ["judge_versions"]


def judge_versions(
    together: Together, interpreter: Interpreter, *, driver_cuda: str | None = None
) -> tuple[Finding, ...]:
    """What is to be said about an interpreter's versions.

    Args:
        together: What the commit asks for.
        interpreter: The interpreter that is to train it.
        driver_cuda: Highest CUDA version that the machine's driver supports; None without a driver.
    """
    core = together.mcore_pins or Pins()
    found = [
        _asked(together),
        _python(together.pins.python or core.python, interpreter),
        _torch(together, interpreter),
        _engine(together, interpreter),
        *_cuda(together, interpreter, driver_cuda),
    ]
    return tuple(finding for finding in found if finding is not None)


def _finding(check: str, severity: Severity, where: object, what: str, advice: str = "") -> Finding:
    return Finding(check=check, family=Family.VERSIONS, severity=severity, where=str(where), what=what, advice=advice)


def _asked(together: Together) -> Finding:
    """What the commit asks for, in one line; no judgement."""
    core = together.mcore_pins or Pins()
    told = {
        "Python": together.pins.python or core.python,
        "torch": together.torch,
        "CUDA": together.cuda,
        "Transformer Engine": together.transformer_engine,
        "image": together.image,
    }
    words = ", ".join(f"{name} {value}" for name, value in told.items() if value)
    names = {"bridge": "Bridge", "megatron-lm": "Megatron-Core"}
    own = f"{names[together.kind]} {together.pins.version or '(version unknown)'}"
    if together.kind == "bridge":
        at = f" at {together.mcore[:10]}" if together.mcore else ""
        unknown = "(not in this clone)" if at else "(not pinned)"
        own += f" with Megatron-Core {together.mcore_version or unknown}{at}"
    return _finding("pins", Severity.OK, together.commit[:10], f"{own}: {words or 'asks for nothing'}")


def _python(asked: str | None, interpreter: Interpreter) -> Finding | None:
    if asked is None:
        return None
    if _fits(interpreter.python, asked):
        return _finding("python", Severity.OK, interpreter.executable, f"Python {interpreter.python} fits {asked}")
    return _finding(
        "python",
        _if_named(interpreter, Severity.PROBLEM),
        interpreter.executable,
        f"Python {interpreter.python}, and the commit asks for {asked}",
        "Name the interpreter that trains: --python PATH.",
    )


def _torch(together: Together, interpreter: Interpreter) -> Finding:
    installed, core = interpreter.versions.get("torch"), together.mcore_pins or Pins()
    asked = together.pins.torch or core.torch
    if installed is None:
        return _finding(
            "torch",
            _if_named(interpreter, Severity.PROBLEM),
            interpreter.executable,
            "torch isn't installed, so this interpreter can't train",
            "Name the interpreter that trains: --python PATH.",
        )
    if asked and not _fits(installed, asked):
        what = f"torch {installed}, and the commit asks for {asked}"
        return _finding("torch", _if_named(interpreter, Severity.PROBLEM), interpreter.executable, what)
    locked = together.pins.torch_locked or core.torch_locked
    if locked and _release(installed) != _release(locked):
        what = f"torch {installed}; uv.lock was made with {locked}, whose kernels may round otherwise"
        return _finding("torch", Severity.NOTE, interpreter.executable, what)
    return _finding("torch", Severity.OK, interpreter.executable, f"torch {installed}")


def _engine(together: Together, interpreter: Interpreter) -> Finding | None:
    installed, core = interpreter.versions.get("transformer-engine"), together.mcore_pins or Pins()
    locked = together.pins.transformer_engine_locked or core.transformer_engine_locked
    asked = together.transformer_engine
    if installed is None:
        if asked is None:
            return None
        what = f"Transformer Engine isn't installed; the commit is used with {asked}"
        advice = "The lane cpu needs none. On a GPU, Megatron-Core without it takes other kernels, and losses differ."
        return _finding("transformer-engine", Severity.NOTE, interpreter.executable, what, advice)
    if locked and installed != locked:
        what = f"Transformer Engine {installed}, and uv.lock names {locked}"
        advice = "Its releases change losses by themselves: don't compare with runs of the other one."
        return _finding("transformer-engine", Severity.WARNING, interpreter.executable, what, advice)
    return _finding("transformer-engine", Severity.OK, interpreter.executable, f"Transformer Engine {installed}")


def _cuda(together: Together, interpreter: Interpreter, driver_cuda: str | None) -> list[Finding]:
    built, asked = interpreter.torch_cuda, together.cuda
    if built is None:
        if "torch" not in interpreter.versions:
            return []
        what = "torch is a build without CUDA: only the lane cpu can run"
        return [_finding("cuda", Severity.NOTE, interpreter.executable, what)]
    found = []
    if asked and _major(built) != _major(asked):
        what = f"torch was built for CUDA {built}, and the commit is used with CUDA {asked}"
        found.append(_finding("cuda", Severity.WARNING, interpreter.executable, what))
    if driver_cuda and _number(driver_cuda) < _number(built) and _major(driver_cuda) != _major(built):
        what = f"torch was built for CUDA {built}, and the driver supports CUDA {driver_cuda} at most"
        found.append(_finding("driver", Severity.PROBLEM, interpreter.executable, what, "Update the driver."))
    return found or [_finding("cuda", Severity.OK, interpreter.executable, f"torch is built for CUDA {built}")]


def _if_named(interpreter: Interpreter, severity: Severity) -> Severity:
    """An interpreter that nobody named may not be the one that trains."""
    return severity if interpreter.is_named else Severity.WARNING


def _fits(version: str, asked: str) -> bool:
    """Whether a version satisfies a specifier; one that can't be read forbids nothing."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    try:
        return SpecifierSet(asked).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True


def _release(version: str) -> str:
    """A version without its local part: ``2.13.0+cpu`` is ``2.13.0``."""
    return version.partition("+")[0]


def _major(version: str) -> str:
    return version.partition(".")[0]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
