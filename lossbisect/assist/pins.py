"""Which versions a commit asks for, in its own words: ``pyproject.toml``, ``uv.lock``, the image's name.

Every figure is read from the files of the commit at hand; what a commit doesn't say is None. Pure but for the reader
that is handed in.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FILES", "Pins", "Reader", "read_pins"]

type Reader = Callable[[str], str | None]
"""The text of a file by its path in the repository; None where there is no such file."""

FILES = (
    "pyproject.toml",
    "uv.lock",
    "setup.py",
    "docker/Dockerfile.ci",
    "docker/.ngc_version.dev",
    "docker/Dockerfile.ci.dev",
    ".gitlab/stages/01.build.yml",
    "src/megatron/bridge/package_info.py",
    "megatron/core/package_info.py",
    "src/megatron/hub/package_info.py",
)
"""All files that a pin may be read from."""

_IMAGE_FILES = FILES[3:7]
_IMAGE = re.compile(r"\b(pytorch:\d\d\.\d\d-py3)\b")
_VERSION_PART = re.compile(r"^(MAJOR|MINOR|PATCH|PRE_RELEASE)\s*=\s*['\"]?([\w.]*)['\"]?\s*$", re.MULTILINE)
_LOCKED = re.compile(r'^\[\[package\]\]\nname = "(torch|transformer-engine)"\nversion = "([^"]+)"', re.MULTILINE)
_LOCKED_CORE = re.compile(
    r'^name = "megatron-core"\nversion = "([^"]+)"\nsource = \{ (?:registry|git = "[^"#]*#([0-9a-f]{40})")',
    re.MULTILINE,
)
_LOCKED_CUDA = re.compile(r'^\[\[package\]\]\nname = "nvidia-cuda-runtime(-cu\d+)?"\nversion = "([^"]+)"', re.MULTILINE)
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?\s*(?:@\s*(\S+))?\s*([^;@]*)")
_CUDA_EXTRA = re.compile(r"core[_-]cu(\d+)")
_SETUP_PYTHON = re.compile(r"python_requires\s*=\s*['\"]([^'\"]+)['\"]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pins:
    """What one commit of Bridge or Megatron-LM asks for.

    Attributes:
        version: Its own version, such as ``0.7.0``.
        python: Python, as a specifier such as ``>=3.12,<3.13``.
        torch: torch, as a specifier.
        torch_locked: torch that ``uv.lock`` was resolved with. Where the lock marks it as never installed, the image's
            own is used.
        transformer_engine: Transformer Engine, as a specifier or a Git revision.
        transformer_engine_locked: Its version in ``uv.lock``.
        mcore_locked: Megatron-Core in ``uv.lock``, from before it was a submodule of Bridge.
        mcore_commit: Its commit there, if it came from Git.
        cuda: Major version of CUDA that the extra of Transformer Engine names, or the locked runtime's version.
        image: NVIDIA's PyTorch image that it is built in, such as ``pytorch:26.06-py3``.
    """

    version: str | None = None
    python: str | None = None
    torch: str | None = None
    torch_locked: str | None = None
    transformer_engine: str | None = None
    transformer_engine_locked: str | None = None
    mcore_locked: str | None = None
    mcore_commit: str | None = None
    cuda: str | None = None
    image: str | None = None


def read_pins(read: Reader) -> Pins:
    """What the files of one commit ask for."""
    project = _toml(read("pyproject.toml"))
    requirements = _requirements(project)
    lock = read("uv.lock") or ""
    locked = {match[1]: match[2] for match in _LOCKED.finditer(lock)}
    core = _LOCKED_CORE.search(lock)
    engine, engine_extras = _engine(project, requirements)
    return Pins(
        version=_version(read),
        python=_python(project, read),
        torch=next((spec for name, _, spec in requirements if name == "torch" and spec), None),
        torch_locked=locked.get("torch"),
        transformer_engine=engine,
        transformer_engine_locked=locked.get("transformer-engine"),
        mcore_locked=core[1] if core else None,
        mcore_commit=core[2] if core else None,
        cuda=_cuda(engine_extras, lock),
        image=next((found[1] for file in _IMAGE_FILES if (found := _image(read(file)))), None),
    )


def _toml(text: str | None) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text or "")
    except tomllib.TOMLDecodeError:
        return {}


def _requirements(project: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, extras and specifier (or Git revision) of each requirement, extras' and overrides' included."""
    table = project.get("project", {})
    uv = project.get("tool", {}).get("uv", {})
    lists = [table.get("dependencies", []), *table.get("optional-dependencies", {}).values()]
    lists.append(uv.get("override-dependencies", []))
    found = []
    for line in (line for lines in lists for line in lines if isinstance(line, str)):
        match = _REQUIREMENT.match(line)
        if match:
            revision = match[3].rpartition("@")[2] if match[3] and "@" in match[3] else ""
            found.append((match[1].lower().replace("_", "-"), match[2] or "", revision or match[4].strip()))
    return found


def _engine(project: Mapping[str, Any], requirements: list[tuple[str, str, str]]) -> tuple[str | None, str]:
    """What is asked of Transformer Engine, and its extras. A Git source beats a range of versions, as in uv."""
    own = [(extras, spec) for name, extras, spec in requirements if name == "transformer-engine"]
    extras = ",".join(extras for extras, _ in own)
    source = project.get("tool", {}).get("uv", {}).get("sources", {}).get("transformer-engine", {})
    revision: str | None = source.get("rev") if isinstance(source, dict) else None
    return revision or next((spec for _, spec in reversed(own) if spec), None), extras


def _cuda(extras: str, lock: str) -> str | None:
    extra = _CUDA_EXTRA.search(extras) or _CUDA_EXTRA.search(_engine_in_lock(lock))
    if extra:
        return extra[1]
    runtimes = [match[2] for match in _LOCKED_CUDA.finditer(lock)]
    return max(runtimes, key=_numbers, default=None)


def _engine_in_lock(lock: str) -> str:
    """The line of the lock in which Megatron-Core asks for Transformer Engine: Bridge's own files don't."""
    return next((line for line in lock.splitlines() if 'name = "transformer-engine", extras' in line), "")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _python(project: Mapping[str, Any], read: Reader) -> str | None:
    asked: str | None = project.get("project", {}).get("requires-python")
    if asked is not None:
        return asked
    found = _SETUP_PYTHON.search(read("setup.py") or "")
    return found[1] if found else None


def _version(read: Reader) -> str | None:
    # Bridge was called Hub until July 2025.
    places = (
        "src/megatron/bridge/package_info.py",
        "megatron/core/package_info.py",
        "src/megatron/hub/package_info.py",
    )
    text = next(filter(None, map(read, places)), "")
    parts: dict[str, str] = dict(_VERSION_PART.findall(text))
    if not {"MAJOR", "MINOR", "PATCH"} <= parts.keys():
        return None
    return ".".join(parts[name] for name in ("MAJOR", "MINOR", "PATCH")) + parts.get("PRE_RELEASE", "")


def _image(text: str | None) -> re.Match[str] | None:
    """The newest PyTorch image that a file names: builds for long-term support name an older one beside it."""
    return max(_IMAGE.finditer(text or ""), key=lambda match: match[1], default=None)
