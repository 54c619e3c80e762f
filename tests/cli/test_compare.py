"""``lossbisect compare``: exit code and output together."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lossbisect.cli import main

REAL = Path(__file__).parents[2] / "fixtures" / "real"
BRIDGE = str(REAL / "bridge-main-2026-08-1rank.log")
MEGATRON = str(REAL / "mlm-main-2026-08-1rank.log")
ADAM_EPS = str(REAL / "mlm-main-2026-08-1rank-adam-eps-1e-5.log")

type Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``lossbisect compare`` and return its exit code, stdout and stderr."""

    def _run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["compare", *arguments])
        captured = capsys.readouterr()
        code = stopped.value.code
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return _run


def _console_log(path: Path, losses: list[str]) -> str:
    """A minimal console log with one row for each loss."""
    rows = [
        f" [2026-08-22 10:00:{second:02d}] iteration {second:8d}/{len(losses):8d} | consumed samples: {second * 8:12d} "
        f"| elapsed time per iteration (ms): 1000.0 | learning rate: 1.000000E-04 | global batch size:     8 "
        f"| lm loss: {loss} | loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations:   0 "
        f"| number of nan iterations:   0 |\n"
        for second, loss in enumerate(losses, start=1)
    ]
    path.write_text("".join(rows), encoding="utf-8")
    return str(path)


def test_same_exits_0_and_says_so_on_stdout(run: Run) -> None:
    """The matched pair of the two code bases."""
    code, out, err = run(BRIDGE, MEGATRON)
    assert (code, err) == (0, "")
    assert out.startswith("SAME: lm loss is the same within float32 rounding: largest relative difference 1.0e-5")


def test_diverged_exits_1_and_names_the_cause(run: Run) -> None:
    """Another epsilon of Adam."""
    code, out, err = run(MEGATRON, ADAM_EPS)
    assert (code, err) == (1, "")
    assert out.startswith("DIVERGED: lm loss diverges from iteration 3 (iterations 1 and 2 equal)")
    assert "adam_eps differs: 1e-08 vs 1e-05" in out.splitlines()[0]


def test_undecided_exits_3(run: Run, tmp_path: Path) -> None:
    """Two equal iterations prove too little."""
    log = _console_log(tmp_path / "short.log", ["5.000000E+00", "4.000000E+00"])
    code, out, _ = run(log, log)
    assert code == 3
    assert out.startswith("UNDECIDED: ")
    assert "the same file" in out


@pytest.mark.parametrize(("tolerance", "code"), [("auto", 0), ("exact", 1), ("rtol=1e-4", 0), ("rtol=1e-6", 1)])
def test_tolerance_decides(run: Run, tolerance: str, code: int) -> None:
    """From what rounding explains to every digit."""
    assert run(BRIDGE, MEGATRON, "--tolerance", tolerance)[0] == code


def test_json_is_one_object_and_nothing_else(run: Run) -> None:
    """And the exit code stays the verdict's."""
    code, out, _ = run(MEGATRON, ADAM_EPS, "--json")
    report = json.loads(out)
    assert (code, report["verdict"], report["difference"]["first_divergent"]) == (1, "diverged", 3)
    assert report["config"][0]["field"] == "adam_eps"


def test_plain_comparison_loads_only_what_it_needs() -> None:
    """Cold start: no test against repeats, no groups, no watch, no pictures and no pages."""
    script = "import sys\nfrom lossbisect.cli import main\n"
    script += (
        f"try: main(['compare', {MEGATRON!r}, {ADAM_EPS!r}])\nexcept SystemExit as stop: print('CODE', stop.code)\n"
    )
    script += "print('LOADED', sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "CODE 1" in done.stdout
    loaded = done.stdout.rpartition("LOADED ")[2]
    idle = (
        "scipy",
        "lossbisect.compare.effect",
        "lossbisect.compare.groups",
        "lossbisect.compare.watching",
        "lossbisect.compare.early",
        "lossbisect.report.plot",
        "lossbisect.report.html",
        "lossbisect.report.json",
        "lossbisect.redact",
        "lossbisect.train.types",
        "lossbisect.parsers.golden",
        "lossbisect.parsers.nemo",
        "lossbisect.parsers.scalars",
        "lossbisect.parsers.tensorboard",
        "lossbisect.parsers.torchtitan",
        "lossbisect.parsers.workers",
    )
    assert [name for name in idle if f"'{name}'" in loaded] == []


def test_plot_is_written(run: Run, tmp_path: Path) -> None:
    """Besides the text."""
    code, out, _ = run(BRIDGE, MEGATRON, "--plot", str(tmp_path / "loss.png"))
    assert code == 0
    assert out.startswith("SAME")
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_other_metric(run: Run) -> None:
    """The gradient norm as the judge."""
    code, out, _ = run(MEGATRON, ADAM_EPS, "--metric", "grad_norm")
    assert code == 1
    assert out.startswith("DIVERGED: grad norm diverges from iteration 3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MEGATRON,), "Missing argument 'CANDIDATE...'"),
        ((), "or --group twice"),
        ((MEGATRON, ADAM_EPS, "--group", f"a={MEGATRON}", "--group", f"b={BRIDGE}"), "give either"),
        (("--group", f"a={MEGATRON}"), "nothing to be compared with"),
        (("--group", "a=no-such-*.log", "--group", f"b={BRIDGE}"), "No file matches 'no-such-*.log'"),
        (("--group", "no-pattern", "--group", f"b={BRIDGE}"), "isn't NAME=GLOB"),
        (("--group", f"a={MEGATRON}", "--group", f"b={BRIDGE}"), "without --group"),
        ((MEGATRON, ADAM_EPS, "--on", "time"), "is not one of"),
        ((MEGATRON, ADAM_EPS, "--tolerance", "exact", "--repeat", MEGATRON), "give one of the two"),
        ((MEGATRON, ADAM_EPS, BRIDGE, "--json"), "take one candidate"),
        ((MEGATRON, ADAM_EPS, "--from", "8", "--to", "3"), "--from 8 is after --to 3"),
        (("-", "-"), "Standard input holds one log"),
        ((MEGATRON, "no-such.log"), "'no-such.log' does not exist"),
        ((MEGATRON, str(REAL)), "is a directory"),
        ((MEGATRON, ADAM_EPS, "--tolerance", "1e-5"), "is none of auto, exact, rtol=NUMBER"),
        ((MEGATRON, ADAM_EPS, "--plot", "loss.gif"), "must end in .png, .svg or .pdf"),
        ((MEGATRON, ADAM_EPS, "--plot", "no-such-folder/loss.png"), "does not exist"),
        (
            (MEGATRON, ADAM_EPS, "--metric", "loss"),
            "Neither log has a value of 'loss'. Metrics: the baseline has lm_loss",
        ),
    ],
)
def test_wrong_usage_exits_2_with_a_reason(run: Run, arguments: tuple[str, ...], message: str) -> None:
    """Never a verdict, and nothing on stdout."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_file_without_a_row_exits_2(run: Run, tmp_path: Path) -> None:
    """No data is no verdict."""
    empty = tmp_path / "empty.log"
    empty.write_text("hello\n", encoding="utf-8")
    code, out, err = run(MEGATRON, str(empty))
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert str(empty) in err


def test_no_common_iteration_exits_2(run: Run, tmp_path: Path) -> None:
    """And both stretches are told."""
    late = tmp_path / "late.log"
    text = Path(_console_log(tmp_path / "train.log", ["5.000000E+00"] * 12)).read_text(encoding="utf-8")
    late.write_text("".join(text.splitlines(keepends=True)[10:]), encoding="utf-8")
    code, _, err = run(MEGATRON, str(late))
    assert code == 2
    assert "No iteration in common" in err
    assert "iterations 1 to 10" in err


def test_bad_plot_path_is_refused_before_the_logs_are_read(run: Run, tmp_path: Path) -> None:
    """A file that is no log isn't even opened."""
    empty = tmp_path / "empty.log"
    empty.touch()
    code, _, err = run(str(empty), str(empty), "--plot", "loss.gif")
    assert code == 2
    assert "must end in" in err


def test_help_shows_an_example_and_the_exit_codes(run: Run) -> None:
    """Whoever writes a script needs both."""
    code, out, _ = run("--help")
    assert code == 0
    assert "Example: lossbisect compare megatron-lm.log bridge.log" in out
    assert "3 undecided" in out
    assert "[default: auto]" in " ".join(out.split())


def test_repeats_are_the_noise_source(run: Run) -> None:
    """A repeat that is equal in every digit makes the last one count."""
    code, out, _ = run(MEGATRON, BRIDGE, "--repeat", MEGATRON)
    assert code == 1
    assert "1 repeat equal in every digit" in out


@pytest.mark.parametrize(("rule", "code"), [("megatron-lm", 0), ("bridge", 0), ("torchtitan", 1)])
def test_rule_of_another_project_says_what_ci_would_have_said(run: Run, rule: str, code: int) -> None:
    """Another epsilon of Adam passes two of the three."""
    assert run(MEGATRON, ADAM_EPS, "--tolerance", rule)[0] == code


def test_several_candidates_make_a_table_with_the_worst_code(run: Run) -> None:
    """One line each, and the reasons below."""
    code, out, _ = run(MEGATRON, BRIDGE, ADAM_EPS)
    lines = out.splitlines()
    assert code == 1
    assert [line.split()[1] for line in lines[3:5]] == ["SAME", "DIVERGED"]
    assert "gradient-or-optimizer" in lines[4]


def test_groups_are_compared_by_their_patterns(run: Run, tmp_path: Path) -> None:
    """Three runs each, named for people; the pattern is expanded here, so that it may be quoted."""
    for name in ("old", "new"):
        for seed in range(3):
            losses = [f"{5 - second / 10 + (seed + (name == 'new')) * 1e-6:.6E}" for second in range(1, 21)]
            _console_log(tmp_path / f"{name}-{seed}.log", losses)
    patterns = [f"{name}={tmp_path}/{name}-*.log" for name in ("old", "new")]
    code, out, _ = run("--group", patterns[0], "--group", patterns[1])
    assert code == 0
    assert "same within 4 further runs" in out
    assert "baseline     old (3 runs)" in out


def test_several_groups_make_a_table(run: Run, tmp_path: Path) -> None:
    """All against the first."""
    for name in ("a", "b", "c"):
        for seed in range(2):
            losses = [f"{5 - second / 10 + seed * 1e-6:.6E}" for second in range(1, 21)]
            _console_log(tmp_path / f"{name}{seed}.log", losses)
    names = [part for name in ("a", "b", "c") for part in ("--group", f"{name}={tmp_path}/{name}?.log")]
    code, out, _ = run(*names)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[3:5]] == ["b", "c"]


def test_batch_sizes_are_compared_on_consumed_samples(run: Run, tmp_path: Path) -> None:
    """Rows of 8 and of 16 sequences; the batch size is no difference then."""
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    losses = [5 - second / 100 for second in range(1, 41)]
    _console_log(small, [f"{loss:.6E}" for loss in losses])
    text = Path(_console_log(large, [f"{sum(losses[i : i + 2]) / 2:.6E}" for i in range(0, 40, 2)])).read_text("utf-8")
    rows = []
    for second, row in enumerate(text.splitlines(keepends=True), start=1):
        row = row.replace(f"consumed samples: {second * 8:12d}", f"consumed samples: {second * 16:12d}")
        rows.append(row.replace("global batch size:     8", "global batch size:    16"))
    large.write_text("".join(rows), encoding="utf-8")
    code, out, _ = run(str(small), str(large), "--on", "consumed_samples")
    assert code == 0
    assert "20 iterations compared" in out
    assert "by the baseline's iterations (consumed samples)" in out
    assert run(str(small), str(large))[0] == 1


def test_cut_file_is_undecided_until_the_end_is_named(run: Run, tmp_path: Path) -> None:
    """The first line says where it ends and what to do."""
    whole = Path(_console_log(tmp_path / "whole.log", [f"{5 - second / 10:.6E}" for second in range(1, 21)]))
    cut = tmp_path / "cut.log"
    cut.write_text("".join(whole.read_text("utf-8").splitlines(keepends=True)[:12]), encoding="utf-8")
    code, out, _ = run(str(whole), str(cut))
    assert code == 3
    assert "ends at iteration 12 of the 20 that it announces" in out.splitlines()[0]
    assert run(str(whole), str(cut), "--to", "12")[0] == 0


def test_speed_is_told_and_decides_nothing(run: Run) -> None:
    """Beside the verdict."""
    code, out, _ = run(BRIDGE, MEGATRON)
    assert code == 0
    assert "speed and memory, which decide nothing" in out
    assert "faster by" in out


def test_from_and_to_cut_the_comparison(run: Run) -> None:
    """Both ends count."""
    code, out, _ = run(MEGATRON, ADAM_EPS, "--from", "4", "--to", "6")
    assert code == 1
    assert "differs from iteration 4 on, the first one compared" in out
    assert " 7  " not in out


def test_standard_input_may_be_either_side(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a log comes out of a pipe; the verdict is that of the file."""
    for arguments in ((MEGATRON, "-"), ("-", MEGATRON)):
        with Path(ADAM_EPS).open(encoding="utf-8") as piped:
            monkeypatch.setattr("sys.stdin", piped)
            code, out, _ = run(*arguments)
        assert (code, out.split(":")[0]) == (1, "DIVERGED")


def test_shape_is_told(run: Run) -> None:
    """With its evidence and what to check next."""
    out = run(MEGATRON, ADAM_EPS)[1]
    assert "what its shape speaks for" in out
    assert "check next: adam_eps" in out
