"""The suite command, as far as it trains nothing."""

from pathlib import Path

import pytest

from lossbisect.cli import main
from lossbisect.train.suites import built_in_suites


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["suite", *arguments])
    assert isinstance(caught.value.code, int)
    printed = capsys.readouterr()
    return caught.value.code, printed.out, printed.err


def test_list_names_every_suite_with_its_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    """Each built-in suite has a line that says what it's for, and one with its recipes."""
    code, out, _ = _run(capsys, "list")
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines()[::2]] == list(built_in_suites())
    assert "vanilla-cpu llama-cpu moe-cpu" in out


def test_what_cannot_run_is_said_before_anything_is_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A suite with a recipe that the trainer can't express exits with 2 and one line, and leaves no folder behind."""
    out = tmp_path / "out"
    code, printed, error = _run(capsys, "run", "known-breaks", "--trainer", "mlm", "--out", str(out))
    assert (code, printed) == (2, "")
    assert "masked-microbatch-cpu" in error
    assert len(error.splitlines()) == 1
    assert not out.exists()


def test_a_plan_names_every_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A plan prints the command of each recipe and trains nothing."""
    code, out, _ = _run(capsys, "run", "quick", "--trainer", "core", "--plan", "--out", str(tmp_path / "out"))
    assert code == 0
    assert out.count("core_main") == 3
    assert not (tmp_path / "out").exists()
