"""Doctor: each planted problem is found, and gone once the printed remedy is executed to the letter."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lossbisect.assist.doctor import examine
from lossbisect.assist.findings import Finding, Severity
from tests.assist.conftest import ENVIRONMENT
from tests.assist.support import SUBMODULE, Called, Made, call, drop, make_experiment, make_package
from tests.bisect.support import commit, git, snapshot

pytestmark = pytest.mark.usefixtures("environment")


def found(made: Made, environment: dict[str, str] | None = None, *, is_named: bool = True) -> dict[str, Finding]:
    """What doctor finds, by the name of the check; findings that are fine are left out."""
    python = Path(sys.executable)
    examination = examine(made.root, python=python, is_python_named=is_named, environment=environment or ENVIRONMENT)
    return {item.check: item for item in examination.findings if item.severity is not Severity.OK}


def execute(command: str, variables: str = "") -> str:
    """Run a remedy as a user would paste it, with the tool on PATH; what `variables` prints of the shell it ends in."""
    tool = f'lossbisect() {{ {sys.executable} -m lossbisect "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", f'set -e\n{tool}{command}\nprintf %s "{variables}"'],
        env=ENVIRONMENT | {"LOSSBISECT_CACHE_DIR": os.environ["LOSSBISECT_CACHE_DIR"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _behind(made: Made) -> None:
    git(made.submodule, "checkout", "--quiet", made.main[0])


def _elsewhere_commit(made: Made) -> None:
    commit(made.submodule, "A try of mine", {"megatron/core/mine.py": ""})


def _dev(made: Made) -> None:
    git(made.submodule, "checkout", "--quiet", made.dev)


def _changed(made: Made) -> None:
    (made.submodule / "megatron/core/value.py").write_text("V = 77\n", encoding="utf-8")


def _changed_bridge(made: Made) -> None:
    (made.root / "pyproject.toml").write_text("[project]\n", encoding="utf-8")


def _untracked(made: Made) -> None:
    (made.submodule / "megatron/core/my file.py").write_text("", encoding="utf-8")


def _missing(made: Made) -> None:
    git(made.root, "submodule", "--quiet", "deinit", "--force", SUBMODULE)


def _bisecting(made: Made) -> None:
    git(made.submodule, "bisect", "start")


def _merging(made: Made) -> None:
    git(made.submodule, "checkout", "--quiet", "-b", "mine", made.main[0])
    commit(made.submodule, "Mine", {"megatron/core/value.py": "V = 'mine'\n"})
    subprocess.run(["git", "-C", str(made.submodule), "merge", made.main[2]], capture_output=True, check=False)


def _sparse(made: Made) -> None:
    git(made.root, "sparse-checkout", "set", "--no-cone", "/*", "!/scripts")


def _shallow(made: Made) -> None:
    drop(made.submodule)
    drop(made.root / ".git/modules")
    git(made.root, "config", f"submodule.{SUBMODULE}.url", made.server.as_uri())
    git(made.root, "submodule", "--quiet", "update", "--init", "--depth", "1")


def _experiment(made: Made) -> None:
    make_experiment(made.root / "nemo_experiments")


def _other_checkpoints(made: Made) -> None:
    make_experiment(made.root / "runs" / "my run")


PLANTED: list[tuple[Callable[[Made], None], str, Severity]] = [
    (_behind, "submodule-behind", Severity.PROBLEM),
    (_elsewhere_commit, "submodule-elsewhere", Severity.WARNING),
    (_dev, "submodule-dev", Severity.NOTE),
    (_changed, "changed-files", Severity.WARNING),
    (_changed_bridge, "changed-files", Severity.WARNING),
    (_untracked, "untracked-code", Severity.WARNING),
    (_missing, "submodule-missing", Severity.PROBLEM),
    (_bisecting, "operation", Severity.WARNING),
    (_merging, "operation", Severity.WARNING),
    (_sparse, "missing-folders", Severity.PROBLEM),
    (_shallow, "shallow", Severity.WARNING),
    (_experiment, "stale-experiment", Severity.PROBLEM),
    (_other_checkpoints, "checkpoint-folder", Severity.WARNING),
]


def test_a_clean_checkout_has_no_problem(made: Made) -> None:
    """What is in order is told, with nothing above a note but what the test's own interpreter holds."""
    left = {check: item for check, item in found(made).items() if item.severity is not Severity.NOTE}
    assert set(left) <= {"installed-shadow", "transformer-engine", "cuda", "torch", "disk", "inodes"}


@pytest.mark.parametrize(("plant", "check", "severity"), PLANTED, ids=[item[0].__name__.strip("_") for item in PLANTED])
def test_a_planted_problem_is_found_and_its_remedy_mends_it(
    made: Made, plant: Callable[[Made], None], check: str, severity: Severity
) -> None:
    """Each is found with its severity, looking changes nothing, and the printed command makes it go away."""
    plant(made)
    before = snapshot(made.root)
    finding = found(made)[check]
    assert snapshot(made.root) == before
    assert finding.severity is severity
    assert finding.remedy is not None
    execute(finding.remedy)
    assert check not in found(made)


@pytest.mark.parametrize("is_regular", [False, True])
def test_a_megatron_on_pythonpath_is_found_and_the_export_mends_it(
    made: Made, tmp_path: Path, *, is_regular: bool
) -> None:
    """Another megatron on PYTHONPATH is named, none of it is imported, and the printed export gives the checkout's."""
    other = make_package(tmp_path / "other tree", is_regular=is_regular)
    extra = tmp_path / "harmless"
    extra.mkdir()
    environment = ENVIRONMENT | {"PYTHONPATH": f"{extra}:{other}"}
    check = "regular-megatron" if is_regular else "path-shadow"
    finding = found(made, environment)[check]
    assert finding.severity is Severity.PROBLEM
    assert str(other) in finding.where + finding.what
    assert finding.remedy is not None
    path = execute(finding.remedy, "$PYTHONPATH")
    after = found(made, ENVIRONMENT | {"PYTHONPATH": path})
    assert not {"path-shadow", "regular-megatron", "installed-shadow"} & set(after)
    assert str(extra) in path.split(":")


def test_an_installed_megatron_that_wins_is_found(made: Made, tmp_path: Path) -> None:
    """A package in the interpreter's own environment is named with its version; the export lets the checkout win."""
    python = _interpreter_with_megatron(tmp_path / "env")
    examination = examine(made.root, python=python, is_python_named=True, environment=ENVIRONMENT)
    finding = next(item for item in examination.findings if item.check == "installed-shadow")
    assert finding.severity is Severity.PROBLEM
    assert "0.1.2" in finding.what
    assert finding.remedy is not None
    path = execute(finding.remedy, "$PYTHONPATH")
    again = examine(made.root, python=python, is_python_named=True, environment=ENVIRONMENT | {"PYTHONPATH": path})
    assert "installed-shadow" not in {item.check for item in again.findings}


def _interpreter_with_megatron(folder: Path) -> Path:
    """A virtual environment with a made megatron-core in it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    make_package(site)
    (site / "megatron_core-0.1.2.dist-info").mkdir()
    (site / "megatron_core-0.1.2.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: megatron-core\nVersion: 0.1.2\n", encoding="utf-8"
    )
    return folder / "bin" / "python"


def test_an_interpreter_that_nobody_named_is_only_warned_of(made: Made) -> None:
    """The interpreter that runs lossbisect may not be the one that trains: its packages are no problem yet."""
    checks = found(made, is_named=False)
    assert all(item.severity is not Severity.PROBLEM for item in checks.values() if item.family == "imports")


def test_at_a_commit_its_own_files_decide(made: Made) -> None:
    """With a commit named, the versions are those that its files ask for, and nothing is checked out."""
    pinned = git(made.root, "rev-parse", "HEAD")
    commit(made.root, "Ask for more", {"pyproject.toml": '[project]\nrequires-python = ">=9.9"\n'})
    head = found(made)
    assert head["python"].severity is Severity.PROBLEM
    before = snapshot(made.root)
    at = examine(made.root, python=Path(sys.executable), is_python_named=True, at=pinned, environment=ENVIRONMENT)
    assert snapshot(made.root) == before
    assert next(item for item in at.findings if item.check == "python").severity is Severity.OK


def command(*arguments: str) -> Called:
    """``lossbisect doctor``."""
    return call("doctor", *arguments)


def test_exit_code_and_json_say_the_same(made: Made) -> None:
    """Exit 1 with a problem, which the text tells first; the JSON has its remedy and what the commit asks for."""
    python = str(made.root / "python")
    (made.root / "python").symlink_to(sys.executable)
    _behind(made)
    text = command(str(made.root))
    assert text.returncode == 1, text.stderr
    assert text.stdout.startswith("PROBLEMS: ")
    assert f"$ lossbisect mcore sync --repo '{made.root}'" in text.stdout
    told = command(str(made.root), "--json", "--python", python)
    report = json.loads(told.stdout)
    assert told.returncode == 1
    assert report["worst"] == "problem"
    assert report["asked_for"]["pins"]["torch_locked"] == "2.13.0"
    assert "submodule-behind" in {item["check"] for item in report["findings"]}


def test_no_checkout_is_an_error_only_where_one_was_named(tmp_path: Path) -> None:
    """Without a path the machine alone is looked at; a path without a checkout is one line and exit 2."""
    assert command().returncode in (0, 1)
    assert "no-checkout" not in command().stderr
    named = command(str(tmp_path))
    assert named.returncode == 2
    assert named.stderr.count("\n") == 1
    assert "not a git checkout" in named.stderr


def test_an_interpreter_without_an_answer_is_a_finding(made: Made, tmp_path: Path) -> None:
    """A broken interpreter doesn't end the examination; what it is about is told."""
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho oops >&2\nexit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    examination = examine(made.root, python=broken, is_python_named=True, environment=ENVIRONMENT)
    finding = next(item for item in examination.findings if item.check == "interpreter")
    assert finding.severity is Severity.PROBLEM
    assert "oops" in finding.what


def test_a_partial_clone_is_told(made: Made) -> None:
    """Files that are fetched when they are needed are a note: a bisect then needs the network."""
    drop(made.submodule)
    drop(made.root / ".git/modules")
    git(made.server, "config", "uploadpack.allowFilter", "true")
    git(made.root, "config", f"submodule.{SUBMODULE}.url", made.server.as_uri())
    git(made.root, "submodule", "--quiet", "update", "--init", "--filter=blob:none")
    assert found(made)["partial"].severity is Severity.NOTE


def test_a_megatron_lm_checkout_is_looked_at_by_itself(made: Made) -> None:
    """Inside the submodule the checkout is Megatron-LM: its own files decide, and the export names it alone."""
    examination = examine(made.submodule, python=Path(sys.executable), is_python_named=True, environment=ENVIRONMENT)
    assert examination.checkout is not None
    assert examination.checkout.kind == "megatron-lm"
    remedies = [item.remedy for item in examination.findings if item.family == "imports"]
    assert all(remedy is None or str(made.root / "src") not in remedy for remedy in remedies)


def test_the_submodules_own_clone_is_as_good_as_git_submodules(made: Made) -> None:
    """A clone put into the submodule's place by hand is judged as the submodule: nothing is missing."""
    drop(made.submodule)
    git(made.root, "clone", "--quiet", str(made.server), SUBMODULE)
    git(made.submodule, "checkout", "--quiet", made.main[2])
    assert not {"submodule-missing", "submodule-behind"} & set(found(made))


def test_an_experiment_where_one_stands_counts_too(made: Made) -> None:
    """A run resumes from the folder that it is started in: that one is looked at beside the checkout."""
    folder = make_experiment(Path.cwd() / "nemo_experiments")
    assert found(made)["stale-experiment"].where == str(folder)
