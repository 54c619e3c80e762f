"""The journal: what is on disk after a kill, and who may go on with it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossbisect import __version__
from lossbisect.bisect.state import SCHEMA_VERSION, Journal, find_bisect, record_from_json, record_to_json, work_root
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.errors import StateError
from lossbisect.train.types import Outcome, RunRecord
from tests.bisect.support import make_plan, make_record

SHA = "a" * 40


def make_step(index: int, record: RunRecord, role: Role = Role.SEARCH) -> BisectStep:
    """A finished, good run."""
    return BisectStep(role=role, index=index, commit=SHA, record=record, verdict=CommitVerdict.GOOD, reason="équal")


def make_journal(tmp_path: Path, steps: int = 2) -> Path:
    """A closed journal with some steps; its file."""
    with Journal.create(tmp_path, make_plan(tmp_path, SHA, SHA)) as journal:
        for index in range(steps):
            journal.append(make_step(index, make_record(SHA, tmp_path / str(index))))
    return journal.directory / "journal.ndjson"


@given(
    reason=st.text(),
    outcome=st.sampled_from(Outcome),
    exit_code=st.none() | st.integers(-64, 255),
    duration_s=st.floats(0, 1e6),
    has_provenance=st.booleans(),
)
def test_a_record_survives_the_disk(
    reason: str, outcome: Outcome, exit_code: int | None, duration_s: float, *, has_provenance: bool
) -> None:
    """Every field of a run comes back as it was, through JSON text."""
    record = make_record(SHA, Path("/tmp/é \udcff"))  # noqa: S108
    record = replace(
        record,
        reason=reason,
        outcome=outcome,
        exit_code=exit_code,
        duration_s=duration_s,
        provenance=record.provenance if has_provenance else None,
    )
    assert record_from_json(json.loads(json.dumps(record_to_json(record), allow_nan=False))) == record


def test_steps_come_back(tmp_path: Path) -> None:
    """What was appended is there when the journal is opened again."""
    path = make_journal(tmp_path, 3)
    with Journal.open(tmp_path, path.parent.name) as journal:
        assert [step.index for step in journal.steps] == [0, 1, 2]
        assert journal.plan == make_plan(tmp_path, SHA, SHA)
        found = journal.find(Role.SEARCH, 1)
    assert found is not None
    assert found.reason == "équal"


def test_a_torn_line_is_dropped(tmp_path: Path) -> None:
    """Cut anywhere in its last line, the journal opens without that step and goes on from there."""
    path = make_journal(tmp_path, 2)
    whole = path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in (start, start + 1, (start + len(whole)) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with Journal.open(tmp_path, path.parent.name) as journal:
            assert [step.index for step in journal.steps] == [0]
            journal.append(make_step(7, make_record(SHA, tmp_path)))
        with Journal.open(tmp_path, path.parent.name) as journal:
            assert [step.index for step in journal.steps] == [0, 7]


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    """A bad line that no kill explains is an error that names file and line."""
    path = make_journal(tmp_path, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{garbage\n" + lines[2])
    with pytest.raises(StateError, match=r"journal\.ndjson:2"):
        Journal.open(tmp_path, path.parent.name)
    path.write_bytes(lines[0] + b'{"kind": "step"}\n')
    with pytest.raises(StateError, match="Start a new bisect"):
        Journal.open(tmp_path, path.parent.name)
    path.write_bytes(b"")
    with pytest.raises(StateError, match="plan is missing"):
        Journal.open(tmp_path, path.parent.name)


def test_a_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    """A journal that another version wrote isn't guessed at."""
    path = make_journal(tmp_path, 0)
    text = path.read_text(encoding="utf-8")
    for change in ((f'"schema_version": {SCHEMA_VERSION}', '"schema_version": 99'), (__version__, "0.0.9")):
        path.write_text(text.replace(*change), encoding="utf-8")
        with pytest.raises(StateError, match="written by lossbisect"):
            Journal.open(tmp_path, path.parent.name)


def test_two_processes_cannot_share_a_bisect(tmp_path: Path) -> None:
    """The second one is refused while the first holds the journal, and let in afterwards."""
    with Journal.create(tmp_path, make_plan(tmp_path, SHA, SHA)) as journal:
        expect = pytest.raises(StateError, match="another process")
        with expect:
            Journal.open(tmp_path, journal.id)
    with Journal.open(tmp_path, journal.id):
        pass


def test_only_a_finished_run_stands_for_an_end(tmp_path: Path) -> None:
    """A failed end is to be run again, unless its failure is what is hunted; in the search a failure is an answer."""
    failed = replace(make_record(SHA, tmp_path), outcome=Outcome.FAILED)
    with Journal.create(tmp_path, make_plan(tmp_path, SHA, SHA)) as journal:
        journal.append(replace(make_step(-1, failed, Role.GOOD_END), verdict=CommitVerdict.SKIP))
        journal.append(make_step(3, failed))
        assert journal.find(Role.GOOD_END, -1) is None
        assert journal.find(Role.SEARCH, 3) is not None
        journal.append(replace(make_step(4, failed, Role.BAD_END), verdict=CommitVerdict.BAD))
        assert journal.find(Role.BAD_END, 4) is not None


def test_runs_can_be_taken_back(tmp_path: Path) -> None:
    """A run that was taken back is gone also after opening the journal again, until it is run once more."""
    with Journal.create(tmp_path, make_plan(tmp_path, SHA, SHA)) as journal:
        steps = [make_step(index, make_record(SHA, tmp_path / str(index))) for index in (1, 2)]
        for step in steps:
            journal.append(step)
        journal.forget(steps[:1], "the machine failed")
    with Journal.open(tmp_path, journal.id) as journal:
        assert [step.index for step in journal.steps] == [2]
        journal.append(steps[0])
    with Journal.open(tmp_path, journal.id) as journal:
        assert [step.index for step in journal.steps] == [2, 1]


def test_a_run_never_gets_a_used_folder(tmp_path: Path) -> None:
    """What a killed run left behind isn't written into."""
    with Journal.create(tmp_path, make_plan(tmp_path, SHA, SHA)) as journal:
        first = journal.run_directory(Role.SEARCH, SHA)
        first.mkdir(parents=True)
        assert journal.run_directory(Role.SEARCH, SHA) not in (first, journal.directory)


def test_the_latest_bisect_of_a_checkout(tmp_path: Path) -> None:
    """Without an id the latest bisect of that checkout is meant; unknown ids and checkouts are errors."""
    for stamp, repo in (
        ("20260101-000000-aaaa", "one"),
        ("20260102-000000-aaaa", "two"),
        ("20260103-000000-aaaa", "one"),
    ):
        with Journal.create(tmp_path, make_plan(tmp_path / repo, SHA, SHA)) as journal:
            pass
        journal.directory.rename(tmp_path / "bisects" / stamp)
    assert find_bisect(tmp_path, None, tmp_path / "one") == "20260103-000000-aaaa"
    assert find_bisect(tmp_path, None, tmp_path / "two") == "20260102-000000-aaaa"
    assert find_bisect(tmp_path, "20260101-000000-aaaa", None) == "20260101-000000-aaaa"
    with pytest.raises(StateError, match="no bisect of"):
        find_bisect(tmp_path, None, tmp_path / "three")
    with pytest.raises(StateError, match="Known: 20260101"):
        find_bisect(tmp_path, "other", None)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """The error names the folder and the option that changes it."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StateError, match="--work-dir"):
        Journal.create(tmp_path / "file", make_plan(tmp_path, SHA, SHA))


def test_where_bisects_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option wins over the environment variable."""
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    assert work_root(None) == tmp_path / "cache"
    assert work_root(tmp_path / "other") == tmp_path / "other"
