"""What a warm parent imports beforehand: it learns from the runs that it forks."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lossbisect
from lossbisect.train.warm import WarmParent

_LAUNCH = Path(lossbisect.__file__).parent / "train" / "inside" / "launch.py"
_SCRIPT = """
import os, signal, sys
print("wave" in sys.modules, flush=True)
import own, wave
if sys.argv[1] == "with a value":
    sys.modules["torch.utils.tensorboard"].SummaryWriter().add_scalar("lm loss", 1.0, 1)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def preload(tmp_path: Path) -> Path:
    """The list, which a run of another recipe has begun."""
    file = tmp_path / "preload.json"
    file.write_text(json.dumps(["json", "no_such_module"]))
    return file


@pytest.fixture
def parent(tmp_path: Path, preload: Path) -> Iterator[WarmParent]:
    """A warm parent of this interpreter, torch left alone."""
    words = [sys.executable, str(_LAUNCH), "--lane", "cuda", "--cache", str(tmp_path), "--preload", str(preload)]
    parent = WarmParent([*words, "--warm"], {}, tmp_path / "parent.log")
    yield parent
    parent.close()


def _run(parent: WarmParent, folder: Path, how: str) -> tuple[str, int | None]:
    """What the script says of `wave` before it imports it, and its exit code."""
    folder.mkdir()
    (folder / "script.py").write_text(_SCRIPT)
    (folder / "own.py").touch()
    console = folder / "console"
    os.mkfifo(console)
    held = os.open(console, os.O_RDWR)
    words = [str(folder), str(folder / "script.py"), how]
    number = parent.start(words, env={"PYTHONPATH": str(folder)}, cwd=folder, console=console)
    assert parent.group(number, 60) is not None
    code = parent.wait(number, 60)
    said = os.read(held, 1000).decode()
    os.close(held)
    return said.strip(), code


@pytest.mark.parametrize(("how", "code"), [("with a value", -9), ("to its end", 0)])
def test_what_one_run_imports_no_later_one_has_to(
    tmp_path: Path, parent: WarmParent, preload: Path, how: str, code: int
) -> None:
    """A module is on the list after the first run that needs it, even a killed one, and loaded before the next fork."""
    assert _run(parent, tmp_path / "first", how) == ("False", code)
    names = json.loads(preload.read_text())
    assert names[:2] == ["json", "no_such_module"], "what other runs need stays"
    assert "wave" in names
    assert "own" not in names, "another commit has another one"
    assert _run(parent, tmp_path / "second", how) == ("True", code)
