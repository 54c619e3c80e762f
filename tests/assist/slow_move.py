"""Run as a script: moves a folder's experiments aside, slowly, as a slow file system does, so that it can be killed."""

import sys
import time
from pathlib import Path

from lossbisect.assist.clean import move_aside, new_id
from lossbisect.assist.experiments import find_experiments

if __name__ == "__main__":
    real = Path.rename

    def slow(self: Path, target: Path) -> Path:
        """Rename, and take a while."""
        time.sleep(0.05)
        return real(self, target)

    Path.rename = slow  # type: ignore[method-assign,assignment]
    found = find_experiments([Path(sys.argv[1])])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    move_aside(found, new_id())
