"""``lossbisect history``, and golden files as its start."""

import json
from pathlib import Path

import pytest

from lossbisect.cli import main
from lossbisect.triage.run import triage
from tests.bisect.support import commit, git, make_history

pytestmark = pytest.mark.usefixtures("machine")


def _golden(*losses: float) -> str:
    values = {str(number): loss for number, loss in enumerate(losses, start=1)}
    return json.dumps({"lm loss": {"start_step": 1, "end_step": len(losses), "step_interval": 1, "values": values}})


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    told = capsys.readouterr()
    return ended.value.code, told.out, told.err


def test_the_history_is_shown_as_table_json_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each triaged commit has its line with what was said of it, and the picture is written."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25, 10.5])
    assert _run(capsys, "history") == (0, "There is no history yet: 'lossbisect triage' makes one.\n", "")
    for sha in shas:
        triage(repo, commit=sha)
    code, out, _ = _run(capsys, "history", "--plot", str(tmp_path / "a.png"))
    assert code == 0
    assert [line.split()[2:4] for line in out.splitlines()[3:5]] == [[shas[0][:10], "ok"], [shas[1][:10], "regression"]]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = _run(capsys, "history", "--json", "--recipe", "vanilla-cpu")
    entries = json.loads(out)["series"][0]["entries"]
    assert [entry["last_loss"] for entry in entries] == [10.125, 10.375]


def test_golden_files_begin_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each revision is a record at its commit, a second import adds none, and the weak weeks are warned of."""
    repo = tmp_path / "mlm"
    make_history(repo, [10.25])
    name = "tests/functional_tests/test_cases/gpt/gpt3_mcore/golden_values_dev_dgx_h100.json"
    for losses, day in (((12.9, 12.5), "2025-09-01"), ((12.9, 12.6), "2025-11-01")):
        when = f"{day}T12:00:00+00:00"
        commit(repo, "Refresh", {name: _golden(*losses)}, GIT_COMMITTER_DATE=when, GIT_AUTHOR_DATE=when)
    words = ("history", "import", str(repo / name), "--repo", str(repo))
    code, out, err = _run(capsys, *words)
    assert (code, out) == (0, "gpt3_mcore (dev_dgx_h100): 2 revisions are new to the history\n")
    assert "certify little" in err
    assert "0 revisions" in _run(capsys, *words)[1]
    code, out, _ = _run(capsys, "history", "--recipe", "gpt3_mcore")
    assert code == 0
    assert git(repo, "rev-parse", "HEAD")[:10] in out
    assert "12.6" in out


def test_two_golden_files_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """'compare' reads them, for the gate of a golden refresh."""
    old = (12.9, 12.5, 12.1, 11.8)
    for file, losses in (("old.json", old), ("same.json", old), ("new.json", (12.9, 12.7, 12.4, 12.2))):
        (tmp_path / file).write_text(_golden(*losses), encoding="utf-8")
    assert _run(capsys, "compare", str(tmp_path / "old.json"), str(tmp_path / "same.json"))[0] == 0
    assert _run(capsys, "compare", str(tmp_path / "old.json"), str(tmp_path / "new.json"))[0] == 1


def test_something_else_than_a_golden_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says which file and what is wrong."""
    repo = tmp_path / "mlm"
    make_history(repo, [10.25])
    commit(repo, "Other", {"other.json": "{}", "broken.json": "{"})
    for name, told in (("other.json", "not a golden file"), ("broken.json", "not JSON")):
        code, _, err = _run(capsys, "history", "import", str(repo / name), "--repo", str(repo))
        assert code == 2
        assert name in err
        assert told in err
