"""Bisects looked at from outside."""

import os
import shutil
from pathlib import Path

from lossbisect.bisect.state import Journal
from lossbisect.serve.watch import Watch
from tests.bisect.support import snapshot
from tests.serve.made import make_journal, running


def test_slots_are_the_runs_that_arent_finished(tmp_path: Path) -> None:
    """One slot with its commit, reason, iteration and loss; none once the process is gone and its run is old."""
    name = make_journal(tmp_path)
    with running(tmp_path, name, at=7) as console:
        watch = Watch(tmp_path, clock=lambda: console.stat().st_mtime + 5)
        bisect = watch.glance(name)
        assert bisect is not None
        assert watch.is_running(name)
        (slot,) = watch.slots(bisect)
        assert (slot.role, slot.progress, round(slot.silent_s)) == ("search", "iteration 7/10, lm loss 9.87124", 5)
        assert slot.commit == console.parent.name.split("-")[-1]
    assert not watch.is_running(name)
    late = Watch(tmp_path, clock=lambda: console.stat().st_mtime + 61)  # the plan allows 60 s
    assert late.slots(bisect) == ()


def test_what_a_killed_process_left_is_no_slot_once_its_run_began_anew(tmp_path: Path) -> None:
    """The same run's later folder counts, not the earlier one."""
    name = make_journal(tmp_path)
    with running(tmp_path, name, at=9) as left:
        pass
    with running(tmp_path, name, at=2) as console:
        assert left.parent != console.parent
        watch = Watch(tmp_path)
        bisect = watch.glance(name)
        assert bisect is not None
        assert [slot.console for slot in watch.slots(bisect)] == [console]


def test_looking_writes_nothing_and_blocks_nobody(tmp_path: Path) -> None:
    """Neither journal nor runs change, and the bisect can be gone on with at once."""
    name = make_journal(tmp_path)
    before = snapshot(tmp_path)
    watch = Watch(tmp_path)
    bisect = watch.glance(name)
    assert bisect is not None
    watch.recall(bisect)
    watch.is_running(name)
    assert snapshot(tmp_path) == before
    Journal.open(tmp_path, name).close()


def test_a_run_that_was_given_up_is_no_slot(tmp_path: Path) -> None:
    """Of two folders where one run goes on at a time, the one with the newest sign of life is it."""
    name = make_journal(tmp_path)
    with running(tmp_path, name, at=9) as console:
        given_up = console.parent.with_name(console.parent.name.replace("006-", "005-"))
        shutil.copytree(console.parent, given_up)
        os.utime(given_up / "console.log", (console.stat().st_mtime - 30,) * 2)
        watch = Watch(tmp_path)
        bisect = watch.glance(name)
        assert bisect is not None
        assert [slot.console for slot in watch.slots(bisect)] == [console]
