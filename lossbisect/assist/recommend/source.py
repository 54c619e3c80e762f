"""The Bridge at hand: its files, found and read without importing a line of it."""

import ast
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from lossbisect.assist.pins import read_pins
from lossbisect.errors import LossbisectError

__all__ = ["PACKAGE", "BridgeSource", "find_bridge"]

PACKAGE = "megatron.bridge"
_PLACES = (Path("src/megatron/bridge"), Path("megatron/bridge"), Path())


@dataclass(frozen=True, kw_only=True, slots=True)
class BridgeSource:
    """Where Bridge's sources lie.

    Attributes:
        root: The folder ``megatron/bridge``.
        version: Bridge's own version, such as ``0.6.2``; ``unknown`` where the files don't say.
        checkout: The checkout's root, which has the entry points; None for an installed package, which has none.
    """

    root: Path
    version: str
    checkout: Path | None
    _modules: dict[str, ast.Module | None] = field(default_factory=dict, repr=False)
    _texts: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def told(self) -> str:
        """One phrase: which Bridge, and where."""
        place = f"checkout {self.checkout}" if self.checkout else f"installed in {self.root}"
        return f"Bridge {self.version} ({place})"

    def is_package(self, module: str) -> bool:
        """Whether a module of Bridge is a package."""
        return self._folder(module).is_dir()

    def module(self, module: str) -> ast.Module | None:
        """The syntax tree of a module of Bridge, read once; None where Bridge has no such module.

        Raises:
            LossbisectError: The file isn't valid Python.
        """
        if module not in self._modules:
            text = self._text(module)
            self._modules[module] = _parse(text, self._file(module)) if text else None
        return self._modules[module]

    def defines(self, module: str, function: str) -> bool:
        """Whether a module defines a function at its top, without parsing it: recipe modules are long."""
        return f"\ndef {function}(" in self._text(module)

    def mentions(self, module: str, text: str) -> bool:
        """Whether a module's text has a string in it, in any case."""
        return text.lower() in self._text(module).lower()

    def _text(self, module: str) -> str:
        if module not in self._texts:
            file = self._file(module)
            self._texts[module] = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        return self._texts[module]

    def _file(self, module: str) -> Path:
        folder = self._folder(module)
        return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")

    def _folder(self, module: str) -> Path:
        return self.root.joinpath(*module.removeprefix(PACKAGE).strip(".").split("."))


def _parse(text: str, file: Path) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise LossbisectError(f"{file}: can't be read as Python ({error}). Is the checkout complete?") from error


def find_bridge(repo: Path | None) -> BridgeSource:
    """The sources in a checkout, or those of the installed package.

    Raises:
        LossbisectError: There is no Bridge there, or none is installed.
    """
    if repo is not None:
        root = next((repo / place for place in _PLACES if (repo / place / "recipes").is_dir()), None)
        if root is None:
            raise LossbisectError(f"{repo}: no Megatron Bridge checkout (src/megatron/bridge/recipes isn't there).")
        return BridgeSource(root=root, version=_own_version(root), checkout=repo if root != repo else None)
    root = _installed()
    if root is None:
        raise LossbisectError("Megatron Bridge isn't installed here. Name a checkout: --repo PATH.")
    try:
        told = version("megatron-bridge")
    except PackageNotFoundError:
        told = _own_version(root)
    return BridgeSource(root=root, version=told, checkout=None)


def _installed() -> Path | None:
    """The folder of the installed package. ``find_spec`` of a submodule would import its parents; this one doesn't."""
    spec = find_spec("megatron")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        root = Path(folder) / "bridge"
        if (root / "recipes").is_dir():
            return root
    return None


def _own_version(root: Path) -> str:
    file = root / "package_info.py"
    text = file.read_text(encoding="utf-8") if file.is_file() else None
    return read_pins(lambda name: text if name.endswith("bridge/package_info.py") else None).version or "unknown"
