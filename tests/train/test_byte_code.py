"""Byte code of the checkout is kept by content: never stale, never in a tree."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lossbisect

_LAUNCH = Path(lossbisect.__file__).parent / "train" / "inside" / "launch.py"
_SCRIPT = """
import json, linecache
from package import module
code = module.Outer.method.__code__
line = linecache.getline(code.co_filename, code.co_firstlineno)
print(json.dumps([module.VALUE, module.__file__, code.co_filename, line]))
"""
_METHOD = "    def method(self): pass\n"


def _tree(folder: Path, value: int) -> Path:
    """A checkout whose module has this value; all of them have the same size and times."""
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "__init__.py").touch()
    (folder / "package" / "module.py").write_text(f"VALUE = {value}\nclass Outer:\n{_METHOD}")
    for path in folder.rglob("*.py"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return folder


def _run(tree: Path, cache: Path, folder: Path) -> list[object]:
    """What the tree's module says in a run of its own."""
    folder.mkdir()
    (folder / "script.py").write_text(_SCRIPT)
    words = ["--lane", "cuda", "--cache", str(cache), "--preload", str(folder / "p.json"), "--out", str(folder)]
    done = subprocess.run(
        [sys.executable, str(_LAUNCH), *words, str(folder / "script.py")],
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    said: list[object] = json.loads(done.stdout)
    return said


def _kept(cache: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}


def test_what_was_compiled_in_one_tree_serves_another(tmp_path: Path) -> None:
    """Equal files of two trees are compiled once, and each module still names its own tree's file."""
    cache = tmp_path / "cache"
    for name in ("one", "two"):
        tree = _tree(tmp_path / name, 1)
        file = str(tree / "package" / "module.py")
        before = _kept(cache)
        assert _run(tree, cache, tmp_path / f"run-{name}") == [1, file, file, _METHOD]
        assert not list(tree.rglob("__pycache__"))
    assert len(before) == 2
    assert _kept(cache) == before


def test_another_content_is_never_taken_for_it(tmp_path: Path) -> None:
    """A file of the same path, size and time, but another content, is the new one; Python's own check would miss it."""
    cache, tree = tmp_path / "cache", tmp_path / "tree"
    for value in (1, 2):
        _tree(tree, value)
        assert _run(tree, cache, tmp_path / f"run-{value}")[0] == value
        tree.rename(tmp_path / f"was-{value}")


@pytest.mark.parametrize("garbage", [b"", b"\xe3", b"garbage", b"N"])
def test_a_damaged_cache_costs_time_only(tmp_path: Path, garbage: bytes) -> None:
    """What isn't byte code is compiled anew, and replaced."""
    cache, tree = tmp_path / "cache", _tree(tmp_path / "tree", 1)
    _run(tree, cache, tmp_path / "first")
    sound = {path: path.read_bytes() for path in _kept(cache)}
    for path in sound:
        path.write_bytes(garbage)
    assert _run(tree, cache, tmp_path / "second")[0] == 1
    assert {path: path.read_bytes() for path in _kept(cache)} == sound


def test_a_cache_that_can_not_be_written_costs_time_only(tmp_path: Path) -> None:
    """A file where the cache should be, for one, stops no run."""
    (tmp_path / "cache").write_text("not a folder")
    assert _run(_tree(tmp_path / "tree", 1), tmp_path / "cache", tmp_path / "run")[0] == 1
