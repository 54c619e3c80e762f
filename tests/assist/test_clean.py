"""Moved aside and back: nothing is lost, whatever interrupts."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lossbisect.assist import clean
from lossbisect.assist.clean import find_records, move_aside, new_id, open_files, restore, tracked_files
from lossbisect.assist.experiments import ASIDE, find_experiments
from lossbisect.cli import main
from lossbisect.errors import StateError
from tests.assist.support import Made, make_experiment
from tests.bisect.support import git

pytestmark = pytest.mark.usefixtures("environment")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in a folder but what lossbisect keeps."""
    files = (path for path in folder.rglob("*") if path.is_file() and ASIDE not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def run(*arguments: str) -> int:
    """The exit code of ``lossbisect clean``."""
    with pytest.raises(SystemExit) as caught:
        main(["clean", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_aside_and_back_again(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """The printed command puts everything back as it was, and git sees nothing of either."""
    make_experiment(made.root / "nemo_experiments")
    before = contents(made.root)
    assert run(str(made.root), "--yes") == 0
    out = capsys.readouterr().out
    assert "checkpoint of iteration 10" in out
    assert not (made.root / "nemo_experiments").exists()
    assert git(made.root, "status", "--porcelain") == ""
    command = out.rsplit("lossbisect ", 1)[1].split("\n")[0]
    assert run(str(made.root), "--restore", command.split()[-1]) == 0
    assert contents(made.root) == before
    assert git(made.root, "status", "--porcelain") == ""
    assert run(str(made.root), "--restore") == 2


def test_it_asks_first(made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A no moves nothing and exits 1; no answer at all moves nothing either."""
    make_experiment(made.root / "nemo_experiments")
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    assert run(str(made.root)) == 1
    assert (made.root / "nemo_experiments").is_dir()
    monkeypatch.undo()
    done = subprocess.run(
        [sys.executable, "-m", "lossbisect", "clean", str(made.root)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert (made.root / "nemo_experiments").is_dir()
    assert "Traceback" not in done.stderr + capsys.readouterr().err


def test_other_names_are_moved_only_when_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A checkpoint folder of a name of one's own is left alone and told, until it is named itself."""
    make_experiment(tmp_path / "mine")
    assert run(str(tmp_path), "--yes") == 0
    assert (tmp_path / "mine/default/checkpoints").is_dir()
    assert "Left alone" in capsys.readouterr().err
    assert run(str(tmp_path / "mine/default/checkpoints"), "--yes") == 0
    assert not (tmp_path / "mine/default/checkpoints").exists()


def test_restore_refuses_where_something_new_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a new experiment in the way of one folder, no folder at all is put back, and both are whole."""
    make_experiment(tmp_path / "a" / "nemo_experiments", 1)
    make_experiment(tmp_path / "b" / "nemo_experiments", 2)
    assert run(str(tmp_path), "--yes") == 0
    make_experiment(tmp_path / "b" / "nemo_experiments", 3)
    before = contents(tmp_path)
    assert run(str(tmp_path), "--restore") == 2
    assert "something new is in the way" in capsys.readouterr().err
    assert contents(tmp_path) == before
    assert not (tmp_path / "a" / "nemo_experiments").exists()


def test_the_latest_comes_back_first(tmp_path: Path) -> None:
    """Without an ID the newest of several is put back, then the one before it."""
    for iteration in (1, 2):
        make_experiment(tmp_path / f"{iteration}" / "nemo_experiments", iteration)
        move_aside(find_experiments([tmp_path]), f"2026010{iteration}-000000-aaaa")
    assert run(str(tmp_path), "--restore") == 0
    assert (tmp_path / "2" / "nemo_experiments").is_dir()
    assert not (tmp_path / "1" / "nemo_experiments").exists()
    assert run("--restore", str(tmp_path)) == 0
    assert (tmp_path / "1" / "nemo_experiments").is_dir()


def test_a_link_is_moved_and_not_what_it_leads_to(tmp_path: Path) -> None:
    """Experiments on a scratch file system stay there: the link alone goes aside and comes back."""
    make_experiment(tmp_path / "scratch")
    (tmp_path / "work").mkdir()
    link = tmp_path / "work" / "nemo_experiments"
    link.symlink_to(tmp_path / "scratch")
    before = contents(tmp_path / "scratch")
    assert run(str(link), "--yes") == 0
    assert not os.path.lexists(link)
    assert contents(tmp_path / "scratch") == before
    assert run(str(tmp_path / "work"), "--restore") == 0
    assert link.readlink() == tmp_path / "scratch"


def test_what_is_in_use_or_kept_by_git_is_refused(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that a process of this machine writes into, or that git keeps files of, isn't moved."""
    folder = make_experiment(made.root / "nemo_experiments")
    with subprocess.Popen(["sleep", "60"], cwd=folder) as process:
        assert process.pid in open_files(folder)
        assert run(str(made.root), "--yes") == 2
        assert f"in use by process {process.pid}" in capsys.readouterr().err
        process.kill()
    assert open_files(folder) == ()
    git(made.root, "add", "--force", "nemo_experiments")
    assert tracked_files(folder)
    assert run(str(made.root), "--yes") == 2
    assert folder.is_dir()


def test_a_failed_move_leaves_a_right_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the second of two folders can't be moved, the record tells the first as moved and the second not."""
    for name in ("a", "b"):
        make_experiment(tmp_path / name / "nemo_experiments")
    before = contents(tmp_path)
    real = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.parent.name == "b":
            raise OSError(30, "Read-only file system")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(StateError, match="Read-only file system"):
        move_aside(find_experiments([tmp_path]), new_id())
    monkeypatch.undo()
    records = find_records([tmp_path])
    moved = {item.origin.parent.name: item.is_aside for record in records for item in record.items}
    assert moved == {"a": True, "b": False}
    restore(records)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("delay_s", [0.0, 0.08, 0.13, 0.2])
def test_killed_in_the_middle_nothing_is_lost(tmp_path: Path, delay_s: float) -> None:
    """After kill -9 at any moment each folder is whole in one of its two places, and restore brings all back."""
    for number in range(6):
        make_experiment(tmp_path / str(number) / "nemo_experiments", number)
    before = contents(tmp_path)
    script = Path(__file__).with_name("slow_move.py")
    with subprocess.Popen([sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay_s)
        process.kill()
    for record in find_records([tmp_path]):
        for item in record.items:
            assert item.is_aside != os.path.lexists(item.origin)
    restore(find_records([tmp_path]))
    assert contents(tmp_path) == before


def test_a_broken_record_is_named(tmp_path: Path) -> None:
    """A record that can't be read is one line with its path, and moves nothing."""
    make_experiment(tmp_path / "nemo_experiments")
    (record,) = move_aside(find_experiments([tmp_path]), new_id())
    record.file.write_text('{"schema_version": 99}', encoding="utf-8")
    with pytest.raises(StateError, match="version is 99"):
        find_records([tmp_path])
    assert record.items[0].is_aside


def test_the_record_says_size_and_age(tmp_path: Path) -> None:
    """The record on the disk holds where each folder was, its size, its number of files, and when it was changed."""
    folder = make_experiment(tmp_path / "nemo_experiments")
    changed = max(path.stat().st_mtime for path in [folder, *folder.rglob("*")] if path.is_file())
    (record,) = move_aside(find_experiments([tmp_path]), "20260101-000000-abcd")
    told = json.loads(record.file.read_text(encoding="utf-8"))
    assert told["items"] == [
        {
            "origin": str(folder),
            "aside": "nemo_experiments",
            "size_bytes": 1005,
            "files": 4,
            "changed_s": pytest.approx(changed, abs=5),
        }
    ]
    assert clean.find_records([tmp_path])[0].items[0].origin == folder
