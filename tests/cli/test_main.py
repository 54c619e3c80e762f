"""The command line as a whole: one line for every mistake, and a quick start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lossbisect.cli import cli


def _run(*arguments: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "lossbisect", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=dict(os.environ))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["compare", "only-one.log"], "does not exist"),
        (["compare", ".", "."], "is a directory"),
        (["bisect", "--bad", "x", "--oldest", "y"], "not a git checkout"),
        (["bisect", "--repo", "nowhere", "--good", "a", "--bad", "b"], "no such folder"),
        (["bisect", "--repo", ".", "--good", "a", "--bad", "b"], "not a git checkout"),
        (["run", "--commit", "abc"], "--repo"),
        (["run", "--recipe", "nosuch"], "vanilla-cpu"),
        (["run", "--timeout", "-1"], "--timeout"),
        (["correlate", "--out", "full"], "not empty"),
        (["demo", "--folder", "full"], "not empty"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    """Every wrong use prints one line that says what and what next, no traceback, and exits with 2."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    done = _run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["full", "mine"]


@pytest.mark.parametrize("arguments", [["judge"], ["judge", "--nosuch"], ["judge", "--baseline", "nowhere"]])
def test_judge_never_exits_with_what_git_reads_as_bad(tmp_path: Path, arguments: list[str]) -> None:
    """Wrong usage of judge exits with 128, at which git bisect run stops."""
    assert _run(*arguments, cwd=tmp_path).returncode == 128


def test_a_bug_of_ours_is_a_line_with_the_traceback_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An unforeseen error names itself in one line, is no verdict, and leaves its traceback in a file."""
    from lossbisect.cli import main

    def explode(**_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("lossbisect.cli.run.command.callback", explode)
    for arguments, code in ((["run"], 2),):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == code
    files = list(tmp_path.glob("lossbisect-bug-*.txt"))
    assert len(files) == 1
    assert "ZeroDivisionError: oops" in files[0].read_text()


def test_every_listed_command_has_help_with_an_example() -> None:
    """Each command can be loaded, and its help shows an example and its exit codes."""
    context = __import__("click").Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        assert "Example: " in (command.help or "") and f"lossbisect {name}" in (command.help or "")
        assert "Exit codes" in (command.epilog or ""), name


def test_help_imports_nothing_heavy() -> None:
    """`--help` loads no data frame library, no git, no plotting and no torch: it answers at once."""
    heavy = {"polars", "scipy", "matplotlib", "git", "torch", "numpy", "rich"}
    script = "import sys\nfrom lossbisect.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    script += f"print('LOADED', sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("LOADED []")


def test_compare_imports_neither_plotting_nor_torch() -> None:
    """Comparing two logs without a plot loads no plotting, no git and no torch."""
    log = Path(__file__).parents[2] / "fixtures" / "real" / "bridge-main-2026-08-1rank.log"
    script = "import sys\nfrom lossbisect.cli import main\n"
    script += f"try: main(['compare', {str(log)!r}, {str(log)!r}])\nexcept SystemExit as e: print('CODE', e.code)\n"
    script += "print('LOADED', sorted({'matplotlib', 'git', 'torch', 'rich', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "CODE 0" in done.stdout
    assert done.stdout.strip().endswith("LOADED []")
