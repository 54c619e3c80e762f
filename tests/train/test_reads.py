"""What a run takes from a checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lossbisect.train.reads import Reads

_RUN = """
import sys
from pathlib import Path
from lossbisect.train.inside.reads import record
root, out = sys.argv[1:3]
record(Path(out), [root])
sys.path.insert(0, root)
exec(sys.argv[3])
"""

_KEEPS_BYTE_CODE = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": ""}


def reads_by(tree: Path, program: str) -> Reads:
    """What a program takes from a tree."""
    out = tree.parent / "out"
    out.mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, "-c", _RUN, str(tree), str(out), program], check=True, cwd=out, env=_KEEPS_BYTE_CODE
    )
    (table,) = json.loads((out / "reads-0-of-1.json").read_text(encoding="utf-8"))
    assert Path(table.pop("root")) == tree.resolve()
    return Reads(**{kind: frozenset(paths) for kind, paths in table.items()})


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small checkout."""
    files = {
        "pkg/__init__.py": "",
        "pkg/used.py": "VALUE = 1\n",
        "pkg/unused.py": "VALUE = 2\n",
        "space/inner.py": "",
        "data/table.txt": "1",
        "data/other.txt": "2",
        "native/helper.cpp": "",
    }
    for name, text in files.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text, encoding="utf-8")
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("program", "path", "is_same_file", "is_touched"),
    [
        ("import pkg.used", "pkg/used.py", True, True),
        ("import pkg.used", "pkg/__init__.py", True, True),
        ("import pkg.used", "pkg/unused.py", True, False),
        ("import pkg.used", "pkg/new.py", False, False),
        # A package takes the place of a module of its name, and so does an extension.
        ("import pkg.used", "pkg/used/__init__.py", False, True),
        ("import pkg.used", "pkg/used.cpython-312-x86_64-linux-gnu.so", False, True),
        ("import space.inner", "space/__init__.py", False, True),
        # What was looked for in vain may come into being, in each of its forms.
        ("try: import apex\nexcept ImportError: pass", "apex.py", False, True),
        ("try: import apex\nexcept ImportError: pass", "apex/__init__.py", False, True),
        ("try: import apex\nexcept ImportError: pass", "apex/normalization/fused.py", False, True),
        ("try: import apex\nexcept ImportError: pass", "apexes.py", False, False),
        ("from pkg import used\ntry: from pkg import fast\nexcept ImportError: pass", "pkg/fast.py", False, True),
        ("import os; os.path.exists(root + '/flag')", "flag", False, True),
        ("import os; os.path.exists(root + '/flag')", "flags", False, False),
        ("import os; os.path.isfile(root + '/data/table.txt')", "data/table.txt", False, True),
        ("from pathlib import Path; Path(root, 'data/table.txt').read_text()", "data/table.txt", True, True),
        ("from pathlib import Path; Path(root, 'data/table.txt').read_text()", "data/other.txt", True, False),
        # A listing tells names, not contents.
        ("import os; os.listdir(root + '/data')", "data/third.txt", False, True),
        ("import os; os.listdir(root + '/data')", "data/other.txt", True, False),
        # What a subprocess does with what it was given isn't seen.
        ("import subprocess; subprocess.run(['true', root + '/native'])", "native/helper.cpp", True, True),
        ("import os, subprocess; subprocess.run(['true'], cwd=root + '/native')", "native/helper.cpp", True, True),
        ("import subprocess; subprocess.run(['true'])", "native/helper.cpp", True, False),
        ("import importlib.metadata as m; list(m.distributions())", "data/third.txt", False, False),
        ("import importlib.metadata as m; list(m.distributions())", "x.dist-info/METADATA", False, True),
        ("open(root + '/written.txt', 'w').write('x')", "written.txt", True, False),
    ],
)
def test_a_change_touches_a_run_that_could_see_it(
    tree: Path, program: str, path: str, is_same_file: bool, is_touched: bool
) -> None:
    """A run is touched by what it opened, found, missed, listed or handed on, and by nothing else."""
    assert reads_by(tree, program).is_touched_by(path, is_same_file=is_same_file) is is_touched


def test_a_module_from_byte_code_counts_as_its_source(tree: Path) -> None:
    """The second run reads byte code instead of the source, and is touched by the source all the same."""
    reads_by(tree, "import pkg.used")
    assert list(tree.glob("pkg/__pycache__/used*.pyc"))
    assert reads_by(tree, "import pkg.used").is_touched_by("pkg/used.py", is_same_file=True)
