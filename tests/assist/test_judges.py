"""The pure judges: facts in, findings out."""

from pathlib import Path

import pytest

from lossbisect.assist.checkout import judge_checkout
from lossbisect.assist.compat import Together
from lossbisect.assist.experiments import Experiment, age_text, find_experiments, judge_experiments, size_text
from lossbisect.assist.findings import Finding, Severity, worst
from lossbisect.assist.gitfacts import Checkout, Tree
from lossbisect.assist.interpreter import Interpreter
from lossbisect.assist.machine import Gpus, Space, judge_gpus, judge_slurm, judge_space
from lossbisect.assist.pins import Pins, read_pins
from lossbisect.assist.variables import judge_variables
from lossbisect.assist.versions import judge_versions
from tests.assist.support import bridge_files, make_experiment, mcore_files

A, B, C = "a" * 40, "b" * 40, "c" * 40


def by_check(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    """Findings by the name of their check."""
    return {finding.check: finding for finding in findings}


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("NVTE_FUSED_ATTN", "0", Severity.NOTE),
        ("NVTE_ALLOW_NONDETERMINISTIC_ALGO", "1", Severity.NOTE),
        ("CUDA_DEVICE_MAX_CONNECTIONS", "1", Severity.NOTE),
        ("CUBLAS_WORKSPACE_CONFIG", ":16:8", Severity.NOTE),
        ("NCCL_ALGO", "Tree", Severity.NOTE),
        ("OMP_NUM_THREADS", "4", Severity.NOTE),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", Severity.NOTE),
        ("NVIDIA_TF32_OVERRIDE", "1", Severity.WARNING),
        ("TORCH_NCCL_AVOID_RECORD_STREAMS", "1", Severity.WARNING),
        ("PYTHONOPTIMIZE", "1", Severity.WARNING),
        ("WORLD_SIZE", "8", Severity.WARNING),
    ],
)
def test_a_variable_that_changes_numbers_is_told_with_its_value(name: str, value: str, severity: Severity) -> None:
    """Each is named with what it does; what can only be wrong comes with the command that unsets it."""
    (finding,) = judge_variables({name: value, "HOME": "/root"})
    assert (finding.where, finding.severity) == (name, severity)
    assert value in finding.what
    assert finding.remedy in (None, f"unset {name}")


def test_harmless_variables_are_silent() -> None:
    """Values that mean nothing or the repeatable choice, and a launcher's under Slurm, are no news."""
    harmless = {"NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0", "TORCH_NCCL_AVOID_RECORD_STREAMS": "0", "PYTHONOPTIMIZE": ""}
    assert worst(judge_variables(harmless)) is Severity.OK
    assert worst(judge_variables({"RANK": "0", "WORLD_SIZE": "8", "SLURM_PROCID": "0"})) is Severity.OK


def _bridge(head: str, *, behind: int | None = None) -> Checkout:
    root = Path("/b")
    return Checkout(
        kind="bridge",
        tree=Tree(root=root, head=C, branch="main"),
        submodule=Tree(root=root / "3rdparty/Megatron-LM", head=head, branch=None),
        pointer=A,
        pins={"main": A, "dev": B},
        behind=behind,
    )


@pytest.mark.parametrize(
    ("head", "behind", "switched_to", "check"),
    [
        (A, 0, None, "submodule"),
        (B, None, None, "submodule-dev"),
        (C, None, C, "submodule-switched"),
        (C, 3, None, "submodule-behind"),
        (C, None, None, "submodule-elsewhere"),
    ],
)
def test_the_submodules_place_has_one_name(head: str, behind: int | None, switched_to: str | None, check: str) -> None:
    """Where the submodule is gives exactly one finding: wanted, dev pin, switched, behind, or elsewhere."""
    found = judge_checkout(_bridge(head, behind=behind), switched_to=switched_to)
    assert [item.check for item in found if item.check.startswith("submodule")] == [check]


def _interpreter(**versions: str) -> Interpreter:
    names = {name.replace("_", "-"): value for name, value in versions.items()}
    return Interpreter(
        executable=Path("/p/bin/python"),
        python="3.12.1",
        prefix=Path("/p"),
        path=(),
        origins={},
        versions=names,
        torch_cuda="13.0" if "torch" in names else None,
        is_named=True,
    )


def _together(**pins: str) -> Together:
    return Together(
        kind="megatron-lm", commit=A, date="2026-08-22T00:00:00Z", pins=Pins(**pins), mcore=A, mcore_pins=Pins(**pins)
    )


@pytest.mark.parametrize(
    ("pins", "versions", "check", "severity"),
    [
        ({"python": ">=3.12,<3.13"}, {}, "python", Severity.OK),
        ({"python": ">=3.13"}, {}, "python", Severity.PROBLEM),
        ({"torch": ">=2.6.0"}, {}, "torch", Severity.PROBLEM),
        ({"torch": ">=2.6.0"}, {"torch": "2.5.1"}, "torch", Severity.PROBLEM),
        ({"torch": ">=2.6.0"}, {"torch": "2.10.0a0+git"}, "torch", Severity.OK),
        ({"torch_locked": "2.13.0"}, {"torch": "2.13.0+cpu"}, "torch", Severity.OK),
        ({"torch_locked": "2.13.0"}, {"torch": "2.12.0"}, "torch", Severity.NOTE),
        ({"transformer_engine_locked": "2.18.0+e7"}, {}, "transformer-engine", Severity.NOTE),
        ({"transformer_engine_locked": "2.18"}, {"transformer_engine": "2.17"}, "transformer-engine", Severity.WARNING),
        ({"transformer_engine_locked": "2.18"}, {"transformer_engine": "2.18"}, "transformer-engine", Severity.OK),
        ({"cuda": "12.8.90"}, {"torch": "2.13.0"}, "cuda", Severity.WARNING),
        ({"cuda": "13"}, {"torch": "2.13.0"}, "cuda", Severity.OK),
    ],
)
def test_versions_against_pins(pins: dict[str, str], versions: dict[str, str], check: str, severity: Severity) -> None:
    """A version that the commit rules out is a problem, another one than the lock's a note or a warning."""
    found = by_check(judge_versions(_together(**pins), _interpreter(**versions)))
    assert found[check].severity is severity


def test_a_driver_that_is_too_old_is_a_problem() -> None:
    """A torch for a newer major version of CUDA than the driver supports can't use the GPU."""
    found = by_check(judge_versions(_together(), _interpreter(torch="2.13.0"), driver_cuda="12.8"))
    assert found["driver"].severity is Severity.PROBLEM
    assert "driver" not in by_check(judge_versions(_together(), _interpreter(torch="2.13.0"), driver_cuda="13.1"))


@pytest.mark.parametrize(
    ("free_bytes", "free_inodes", "worst_severity"),
    [
        (10**12, 10**7, Severity.OK),
        (10**12, None, Severity.OK),
        (5 * 10**9, 10**7, Severity.WARNING),
        (10**8, 10**7, Severity.PROBLEM),
        (10**12, 50_000, Severity.WARNING),
        (10**12, 0, Severity.PROBLEM),
    ],
)
def test_space(free_bytes: int, free_inodes: int | None, worst_severity: Severity) -> None:
    """Bytes and inodes run out separately; a file system without a limit on inodes has none."""
    space = Space(path=Path("/x"), purpose="scratch", free_bytes=free_bytes, free_inodes=free_inodes)
    assert worst(judge_space([space])) is worst_severity


def test_gpus_and_slurm() -> None:
    """No GPU is a note and a broken nvidia-smi a warning; several models and half a Slurm are warnings."""
    assert worst(judge_gpus(None)) is Severity.NOTE
    assert worst(judge_gpus(Gpus(failure="couldn't communicate with the driver"))) is Severity.WARNING
    one = Gpus(names=("H100", "H100"), used_mib=(0, 0), driver="580", cuda="13.0")
    assert worst(judge_gpus(one)) is Severity.OK
    assert by_check(judge_gpus(Gpus(names=("H100", "A100"), used_mib=(0, 9000))))["mixed-gpus"]
    assert by_check(judge_gpus(Gpus(names=("H100",), used_mib=(9000,))))["busy-gpu"]
    assert worst(judge_slurm({"sbatch": "/bin/sbatch", "sinfo": "/bin/sinfo"})) is Severity.OK
    assert worst(judge_slurm({"sbatch": None, "sinfo": None})) is Severity.NOTE
    assert worst(judge_slurm({"sbatch": "/bin/sbatch", "sinfo": None})) is Severity.WARNING


def test_pins_are_read_from_a_commits_own_files() -> None:
    """Each figure comes from the file that holds it, and what no file says is None."""
    core = read_pins(mcore_files().get)
    assert core == Pins(
        version="0.20.0",
        python=">=3.10",
        torch=">=2.6.0",
        torch_locked="2.13.0",
        transformer_engine="4329ff84",
        transformer_engine_locked="2.17.1+4329ff84",
        cuda="13",
        image="pytorch:26.06-py3",
    )
    bridge = read_pins(bridge_files().get)
    assert (bridge.version, bridge.cuda, bridge.image) == ("0.7.0", "13", "pytorch:26.04-py3")
    assert read_pins(lambda _: None) == Pins()


def test_pins_survive_files_that_say_something_else() -> None:
    """Broken TOML, an empty lock, a version in another form and an old setup.py are read as far as they go."""
    files = {"pyproject.toml": "[project\n", "uv.lock": "<html>", "setup.py": "setup(python_requires='>=3.8')"}
    assert read_pins(files.get) == Pins(python=">=3.8")
    old = {"uv.lock": '[[package]]\nname = "nvidia-cuda-runtime-cu12"\nversion = "12.8.90"\n'}
    assert read_pins(old.get).cuda == "12.8.90"


def test_experiments_are_found_where_runs_leave_them(tmp_path: Path) -> None:
    """Default names at any depth, other checkpoints, links; nothing that was moved aside or is in another checkout."""
    make_experiment(tmp_path / "nemo_experiments", 10)
    make_experiment(tmp_path / "examples" / "x" / "NeMo_experiments", 20)
    make_experiment(tmp_path / "runs", 30)
    make_experiment(tmp_path / ".lossbisect-aside" / "1" / "nemo_experiments")
    (tmp_path / "other" / ".git").mkdir(parents=True)
    make_experiment(tmp_path / "other" / "nemo_experiments")
    make_experiment(tmp_path / "far" / "real")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "nemo_experiments").symlink_to(tmp_path / "far" / "real")
    found = {str(item.path.relative_to(tmp_path)): item for item in find_experiments([tmp_path, tmp_path / "runs"])}
    assert set(found) == {
        "nemo_experiments",
        "examples/x/NeMo_experiments",
        "runs/default/checkpoints",
        "far/real/default/checkpoints",
        "linked/nemo_experiments",
    }
    assert found["nemo_experiments"].checkpoints[0][1] == 10
    assert found["nemo_experiments"].size_bytes == 1000 + 3 + 1 + 1
    assert found["nemo_experiments"].files == 4


def test_an_experiment_without_a_checkpoint_is_a_note() -> None:
    """Nothing can be resumed from event files, so a run is in no danger."""
    left = Experiment(
        path=Path("/x/nemo_experiments"), is_default=True, checkpoints=(), size_bytes=1, files=1, changed_s=0
    )
    (finding,) = judge_experiments([left], now_s=90_000.0)
    assert finding.severity is Severity.NOTE
    assert "1 day ago" in finding.what


def test_sizes_and_ages_for_a_person() -> None:
    """Three digits with a unit, and the largest whole unit of time."""
    assert [size_text(size) for size in (0, 999, 1500, 2 * 10**9, 3 * 10**12)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2 GB",
        "3 TB",
    ]
    assert [age_text(age) for age in (-5, 59, 60, 7300, 86400 * 3)] == [
        "less than a minute",
        "less than a minute",
        "1 minute",
        "2 hours",
        "3 days",
    ]
