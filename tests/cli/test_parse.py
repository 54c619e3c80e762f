"""``lossbisect parse``: exit code and output together."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
MOE = LOGS / "12-mlm-core07-mixtral-moe.log"


def parse(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    command = [sys.executable, "-m", "lossbisect", "parse", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_table_says_what_was_read() -> None:
    """The dialect and why, the rows with every digit, and what was left out with its line."""
    code, out, _ = parse(str(MOE))
    assert code == 0
    assert "megatron-lm, as it has Megatron's rows" in out
    assert "4 rows, iterations 43 to 46, 1 cut" in out
    assert "1.829447" in out
    assert "line 4: The row was cut" in out


def test_columns_config_and_summary() -> None:
    """Each shows just what its name says."""
    code, out, _ = parse(str(MOE), "--columns", "iteration,load_balancing_loss")
    assert (code, out.splitlines()[3].split()) == (0, ["iteration", "load_balancing_loss"])
    code, out, _ = parse(str(LOGS / "01-mlm-2019-no-colons.log"), "--config")
    assert code == 0
    assert "train_iters = 600" in out
    code, out, _ = parse(str(MOE), "--summary")
    assert code == 0
    assert "load_balancing_loss" not in out


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "ndjson"])
def test_written_file_is_read_again(tmp_path: Path, ending: str) -> None:
    """All rows and columns go into the file; stdout stays empty."""
    path = tmp_path / f"out.{ending}"
    code, out, err = parse(str(MOE), "-o", str(path))
    assert (code, out) == (0, "")
    assert f"Wrote {path}." in err
    code, out, _ = parse(str(path))
    assert code == 0
    assert "4 rows, iterations 43 to 46, 1 cut" in out


def test_standard_input_and_patterns() -> None:
    """``-`` is standard input; a pattern is every file that fits, and one that can't be read spoils only its own."""
    code, out, _ = parse("-", stdin=MOE.read_bytes())
    assert code == 0
    assert out.startswith("-: megatron-lm")
    code, out, err = parse(str(LOGS / "3[24]*.log"), "--summary")
    assert code == 2
    assert "32-rocm" in out
    assert "34-negative-nanotron.log: no iteration record found" in err


def test_several_logs_in_one_file(tmp_path: Path) -> None:
    """Each row names its log, safe for a spreadsheet."""
    strange = tmp_path / "=cmd.log"
    strange.write_bytes(MOE.read_bytes())
    target = tmp_path / "out.csv"
    command = [sys.executable, "-m", "lossbisect", "parse", "=cmd.log", str(MOE), "-o", str(target)]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    lines = target.read_text().splitlines()
    assert len(lines) == 9
    assert lines[1].startswith("'=cmd.log,43,")
    json_target = tmp_path / "out.json"
    assert parse(str(MOE), str(MOE), "-o", str(json_target))[0] == 0
    assert len(json.loads(json_target.read_text())) == 8


def test_control_characters_stay_text(tmp_path: Path) -> None:
    """What a log says can't move the cursor."""
    path = tmp_path / "x.log"
    path.write_bytes(MOE.read_bytes() + b"\ntorch.OutOfMemoryError: CUDA out of memory. \x9b2J\xc2\x9b31m \x07\n")
    _, out, _ = parse(str(path))
    assert "cuda-oom" in out
    assert not any((ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160 for char in out)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.log"], "missing.log: no such file"),
        (["."], "is a directory"),
        ([], "Missing argument"),
        ([str(MOE), "-o", "x.txt"], "must end in .parquet, .csv, .json or .ndjson"),
        ([str(MOE), "--columns", "zz"], "no column 'zz'"),
        ([sys.executable], "no iteration record found"),
    ],
)
def test_failures_are_one_line_and_exit_2(arguments: list[str], says: str) -> None:
    """Each names what is wrong."""
    code, out, err = parse(*arguments)
    assert code == 2
    assert says in err
    assert "Traceback" not in err + out


def test_empty_standard_input_is_named() -> None:
    """A pipe that gave nothing."""
    code, _, err = parse("-")
    assert code == 2
    assert "-: is empty" in err


def test_formats() -> None:
    """The list that the error message points to."""
    code, out, _ = parse("--formats")
    assert code == 0
    assert "tensorboard" in out
