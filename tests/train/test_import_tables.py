"""transformers' table of its own modules is remembered, and made anew once a file comes or goes."""

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lossbisect.train.inside.import_tables import remember_import_tables

NAME = "transformers.utils.import_utils"


def _module(read: list[str]) -> ModuleType:
    """What reads a folder of files, as transformers does: folder by folder, by its own name."""
    module = ModuleType(NAME)

    def create(path: str) -> dict[object, object]:
        read.append(str(path))
        found: dict[object, object] = {}
        for entry in os.scandir(path):
            if entry.is_dir():
                found[entry.name] = module.create_import_structure_from_path(entry.path)
            else:
                found.setdefault(frozenset({"torch"}), {})[entry.name] = {Path(entry.path).read_text()}  # type: ignore[index]
        return found

    module.create_import_structure_from_path = create  # type: ignore[attr-defined]
    return module


def test_the_table_is_that_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First, remembered, with another file, and with a damaged cache: always what reading gives, and read once each."""
    models, cache = tmp_path / "models", tmp_path / "cache"
    (models / "llama").mkdir(parents=True)
    (models / "llama" / "one.py").write_text("One")
    read = list[str]()
    module = _module(read)
    plain = module.create_import_structure_from_path
    monkeypatch.setitem(sys.modules, NAME, module)
    remember_import_tables(cache)
    for _ in range(2):
        assert module.create_import_structure_from_path(models) == {
            "llama": {frozenset({"torch"}): {"one.py": {"One"}}}
        }
    assert read == [str(models), str(models / "llama")], "once"
    (models / "llama" / "two.py").write_text("Two")
    os.utime(models / "llama", ns=(1, 1))
    assert module.create_import_structure_from_path(models) == plain(models)
    for file in cache.iterdir():
        file.write_bytes(b"torn")
    assert module.create_import_structure_from_path(models) == plain(models)


def test_a_transformers_without_that_function_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is put into a module that does it in another way."""
    module = ModuleType(NAME)
    monkeypatch.setitem(sys.modules, NAME, module)
    remember_import_tables(tmp_path)
    assert "create_import_structure_from_path" not in vars(module)
