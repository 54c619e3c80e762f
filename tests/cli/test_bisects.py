"""``lossbisect bisect status``, ``log``, ``replay``, ``undo``, ``abort``, and ``changelog``."""

import json
from pathlib import Path

import pytest

from lossbisect.cli import main
from tests.bisect.support import make_history

pytestmark = pytest.mark.usefixtures("played")
LOSSES = [10.25] * 4 + [10.26] * 2 + [10.5] * 3


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs read their loss from the tree that they were given."""
    from tests.bisect import support

    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", support.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))


def run(*arguments: str) -> int:
    """The exit code of ``lossbisect``."""
    with pytest.raises(SystemExit) as caught:
        main([*arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_a_bisect_is_looked_after(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status names it, undo takes runs back, a replayed log goes on where it ended, and abort is passed over."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    ends = ["--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main"]
    assert run("bisect", *ends, "--no-store") == 0
    answer = capsys.readouterr().out.splitlines()[0]
    assert answer.startswith(f"FIRST BAD COMMIT: {shas[6][:10]}")
    assert run("bisect", "status") == 0
    line = capsys.readouterr().out
    assert f"{shas[0][:10]}..{shas[8][:10]}" in line
    bisect_id = line.split()[0]
    assert run("bisect", "undo", bisect_id, "--runs", "3") == 0
    assert "Took back culprit again" in capsys.readouterr().out
    assert run("bisect", "log", bisect_id) == 0
    text = capsys.readouterr().out
    log = tmp_path / "bisect.log"
    log.write_text(text, encoding="utf-8")
    assert run("bisect", "replay", str(log)) == 0
    replayed = capsys.readouterr().out.split("--resume ")[1].split()[0]
    assert run("bisect", "--resume", replayed, "--no-store") == 0
    assert capsys.readouterr().out.splitlines()[0] == answer
    assert run("bisect", "abort", replayed) == 0
    assert run("bisect", "--resume", "--repo", str(tmp_path / "mlm"), "--no-store") == 0
    capsys.readouterr()
    assert run("bisect", "status") == 0
    assert "given up" in capsys.readouterr().out


def test_unknown_bisects_are_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that isn't there, and a log that is none, are one line on stderr."""
    (tmp_path / "junk.log").write_bytes(b"junk \xff\n")
    for arguments in (["status", "nonsense"], ["undo", "nonsense"], ["abort", "nonsense"]):
        assert run("bisect", *arguments) == 2
    assert run("bisect", "replay", str(tmp_path / "junk.log")) == 2
    assert "not what 'lossbisect bisect log' prints" in capsys.readouterr().err
    assert run("bisect", "status") == 0
    assert run("bisect", "undo") == 2
    assert "there is no bisect" in capsys.readouterr().err


def test_a_changelog_lists_every_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both changes stand in the Markdown and in the JSON, with size and first iteration; no change is 0 too."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    where = ["--repo", str(tmp_path / "mlm")]
    assert run("changelog", f"{shas[0]}..main", *where) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Lm loss changes")
    assert shas[4] in text
    assert shas[6] in text
    assert shas[5] not in text
    assert run("changelog", f"{shas[0]}..main", *where, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [change["commits"] for change in report["changes"]] == [[shas[4]], [shas[6]]]
    assert report["changes"][0]["difference"]["first_difference"] == 3
    assert run("changelog", f"{shas[0]}..{shas[3]}", *where) == 0
    assert run("changelog", "main", *where) == 2
    assert run("bisect", *where, "--good", shas[0], "--bad", "main", "--all") == 0
    assert capsys.readouterr().out.count("lm loss from iteration 3 on") == 2
