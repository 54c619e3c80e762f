"""Sources are looked up as before, only quicker."""

import ast
import inspect
import sys
from pathlib import Path

import pytest

from lossbisect.train.inside.sources import look_up_quickly


def test_the_same_source_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each class of a file, which is parsed once for both of them; also after the file has changed."""
    monkeypatch.setattr(inspect, "ast", ast)  # taken back afterwards
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
