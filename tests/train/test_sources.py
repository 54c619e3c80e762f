"""Sources are looked up as before, only quicker."""

import ast
import importlib
import inspect
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from lossbisect.train.inside import post_import
from lossbisect.train.inside.sources import look_up_quickly, read_classes_once


def _taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is set on `inspect` now is as it was after the test."""
    monkeypatch.setattr(inspect, "ast", ast)
    monkeypatch.setattr(inspect, "getmodule", inspect.getmodule)


def test_the_same_source_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each class of a file, which is parsed once for both of them; also after the file has changed."""
    _taken_back(monkeypatch)
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "looked_up.py"
    file.write_text("class One:\n    a = 1\n\nclass Two:\n    b = 2\n")
    import looked_up  # type: ignore[import-not-found]

    look_up_quickly()
    parse = inspect.ast.parse  # type: ignore[attr-defined]
    before = parse.cache_info()
    assert inspect.getsource(looked_up.One) == "class One:\n    a = 1\n"
    assert inspect.getsource(looked_up.Two) == "class Two:\n    b = 2\n"
    after = parse.cache_info()
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 1)
    assert inspect.getmodule(looked_up.Two) is looked_up
    file.write_text("# moved down\nclass One:\n    a = 3\n")
    monkeypatch.delitem(sys.modules, "looked_up")
    import looked_up as again

    assert inspect.getsource(again.One) == "class One:\n    a = 3\n"


def test_a_frame_belongs_to_the_same_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of a module's own code, and one of code that only borrows the module's globals."""
    borrowed: dict[str, FrameType] = {}
    code = compile("borrowed['frame'] = sys._getframe()", str(Path(inspect.__file__)), "exec")
    exec(code, {"__name__": __name__, "sys": sys, "borrowed": borrowed})  # noqa: S102
    frames = [sys._getframe(), borrowed["frame"]]  # noqa: SLF001
    expected = [inspect.getmodule(frame) for frame in frames]
    assert expected == [sys.modules[__name__], inspect]
    _taken_back(monkeypatch)
    look_up_quickly()
    assert [inspect.getmodule(frame) for frame in frames] == expected


_ARGUMENT_UTILS = """
class ArgumentGroupFactory:
    def __init__(self, of):
        self.texts = self._get_field_docstrings(of)

    def _get_field_docstrings(self, of):
        reads.append(of.__name__)
        texts = {"field": of.__name__ + of.says}
        if of.__bases__[0] is not object:
            texts.update(self._get_field_docstrings(of.__bases__[0]))
        return texts

reads = []
"""
_CLASSES = """
class Parent:
    says = "!"

class Child(Parent):
    pass

class Other:
    says = "?"
"""


_MODULES = ("megatron", "megatron.training", "megatron.training.argument_utils", "megatron.training.config")


class Megatron:
    """A checkout with a reader of classes, imported anew by each `start`, as a process would."""

    def __init__(self, folder: Path) -> None:
        """Make it in ``folder``."""
        self.training = folder / "megatron" / "training"
        self.training.mkdir(parents=True)
        for package in (self.training, self.training.parent):
            (package / "__init__.py").touch()
        (self.training / "argument_utils.py").write_text(_ARGUMENT_UTILS)
        (self.training / "config.py").write_text(_CLASSES)
        self._cache = folder / "cache"

    def start(self) -> tuple[Any, Any]:
        """The reader and the classes; what was imported before is gone."""
        for name in _MODULES:
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        post_import._acts.clear()  # noqa: SLF001  # a process registers once
        read_classes_once(self._cache)
        return importlib.import_module(_MODULES[2]), importlib.import_module(_MODULES[3])


@pytest.fixture
def megatron(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Megatron:
    """A checkout that is the first on the path; after the test no module is left of it."""
    for name in _MODULES:
        monkeypatch.setitem(sys.modules, name, sys)  # so that they are taken back afterwards
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(post_import, "_acts", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    return Megatron(tmp_path)


def test_megatron_reads_a_class_once(megatron: Megatron) -> None:
    """Also a parent that several have; who changes an answer changes nobody else's."""
    utils, classes = megatron.start()
    utils.ArgumentGroupFactory(classes.Child).texts["field"] = "changed"
    asked = (classes.Child, classes.Parent, classes.Other)
    assert [utils.ArgumentGroupFactory(of).texts["field"] for of in asked] == ["Parent!", "Parent!", "Other?"]
    assert utils.reads == ["Child", "Parent", "Other"]


def test_a_class_is_read_again_once_its_file_has_changed(megatron: Megatron) -> None:
    """The next run takes what the last one read, unless the class's file, or the reader's own, says something else."""

    def reads() -> tuple[str, list[str]]:
        utils, classes = megatron.start()
        return utils.ArgumentGroupFactory(classes.Child).texts["field"], utils.reads

    assert reads() == ("Parent!", ["Child", "Parent"])
    assert reads() == ("Parent!", [])
    (megatron.training / "config.py").write_text(_CLASSES.replace("!", "!!!"))
    assert reads() == ("Parent!!!", ["Child", "Parent"])
    (megatron.training / "argument_utils.py").write_text(_ARGUMENT_UTILS.replace("of.says", "of.says * 2"))
    assert reads() == ("Parent!!!!!!", ["Child", "Parent"])
