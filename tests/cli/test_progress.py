"""What a bisection shows while it goes on."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lossbisect.bisect import Event, EventKind
from lossbisect.cli.progress import Board
from tests.bisect.support import make_history

ROW = " iteration        {}/      10 | consumed samples: 8 | lm loss: 9.871000E+00 | grad norm: 1.0 |"
PLAYED = (
    "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
    "import lossbisect.bisect.runner as runner\n"
    "import lossbisect.train.executors.local as local\n"
    "from tests.bisect.support import play, read_play\n"
    "local.run_recipe, runner.read_curves = play, read_play\n"
    "from lossbisect.cli import main\n"
    "main(['bisect', *sys.argv[1:]])\n"
)


def _board(*times: float) -> Board:
    clock = iter(times)
    return Board(lambda: next(clock))


def test_each_run_has_a_line_with_its_iteration_and_loss() -> None:
    """Two runs at once, told apart by their commits; a line that is no row is shown until there is one."""
    board = _board(0.0, 1.0, *[10.0] * 9)
    for commit in ("aaaaaaaaaa", "bbbbbbbbbb"):
        text = f"Run 1 (search): {commit} subject"
        board.see(Event(kind=EventKind.RUN_STARTED, text=text, commit=commit))
    board.see(Event(kind=EventKind.LINE, text="loading", commit="aaaaaaaaaa"))
    board.see(Event(kind=EventKind.LINE, text=ROW.format(7), commit="bbbbbbbbbb"))
    board.see(Event(kind=EventKind.LINE, text="\x1b[31mwarning", commit="bbbbbbbbbb"))
    first, second = board.lines()
    assert first == "  10 s | Run 1 (search): aaaaaaaaaa | loading"
    assert second == "   9 s | Run 1 (search): bbbbbbbbbb | iteration 7/10, lm loss 9.871"


def test_bracket_stands_first_with_the_time_that_is_left() -> None:
    """Three rounds and two runs to confirm at 20 s each; a finished run's line goes."""
    board = _board(0.0, *[20.0] * 9)
    board.see(Event(kind=EventKind.RUN_STARTED, text="Run 4 (search): aaaaaaaaaa x", commit="aaaaaaaaaa"))
    board.see(Event(kind=EventKind.RUN_FINISHED, text="aaaaaaaaaa good", commit="aaaaaaaaaa"))
    text = "Narrowed from [a, b] (16 commits) to [a, c] (8), about 3 runs left and 2 to confirm"
    board.see(Event(kind=EventKind.NARROWED, text=text, rounds_left=3))
    assert board.lines() == [f"{text}, 1 min 40 s at this pace"]


@pytest.mark.parametrize("is_colourless", [True, False])
def test_terminal_shows_what_happens_and_leaves_plain_lines(tmp_path: Path, is_colourless: bool) -> None:
    """On a terminal the answer has colour, but not with NO_COLOR; the lines are those that a file would get."""
    shas = make_history(tmp_path / "mlm", [10.25] * 3 + [10.26] * 3)
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "LOSSBISECT_CACHE_DIR": str(tmp_path / "cache"), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    if is_colourless:
        environment["NO_COLOR"] = "1"
    master, slave = pty.openpty()
    command = [sys.executable, "-c", PLAYED, root, "--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main"]
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        try:
            while part := os.read(master, 65_536):
                shown += part
        except OSError:
            pass  # how a terminal says that nobody writes to it any more
    os.close(master)
    assert process.returncode == 0, shown
    text = shown.decode()
    assert "Narrowed from [" in text
    assert "FIRST BAD COMMIT" in re.sub(r"\x1b\[[0-9;]*m", "", text)
    colours = re.findall(r"\x1b\[(?:3|4|9)\d[0-9;]*m", text)
    assert bool(colours) is not is_colourless
