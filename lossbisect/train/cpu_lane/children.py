"""Python processes that a trainer spawns are on the lane too.

A spawned process begins as a fresh interpreter that imports the trainer's script again. A checkpoint's writer has one
for its queue: without the lane it would see the libraries that are hidden from the trainer.
"""

import multiprocessing.spawn
from pathlib import Path
from typing import Any

__all__ = ["install"]

_LAUNCH = Path(__file__).parents[1] / "inside" / "launch.py"


def install(cache: Path) -> None:
    """Put processes that `multiprocessing` spawns from here on onto the lane, before they import anything."""
    get_command_line = multiprocessing.spawn.get_command_line

    def on_the_lane(**keywords: Any) -> list[str]:
        words: list[str] = get_command_line(**keywords)
        if "-c" in words:
            program = words.index("-c") + 1
            enter = f"import runpy; runpy.run_path({str(_LAUNCH)!r})['enter_lane']({str(cache)!r})"
            words[program] = f"{enter}; {words[program]}"
        return words

    multiprocessing.spawn.get_command_line = on_the_lane
