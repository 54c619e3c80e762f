"""A bisect in a process of its own, to be killed: ``python killed.py REPO GOOD BAD WORK_DIR [ID]``.

Each run takes a moment, so that a kill meets it at work.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[2]))

from lossbisect.bisect import bisect_range, resume_bisect
from lossbisect.train.types import RunRecord, RunSpec
from tests.bisect.support import play, read_play


def slow(spec: RunSpec, out: Path, *, on_line: Callable[[str], None] | None = None, **_: object) -> RunRecord:
    """A run that takes a tenth of a second."""
    record = play(spec, out, on_line=on_line)
    time.sleep(0.1)
    return record


def main(repo: str, good: str, bad: str, work_dir: str, *ids: str) -> None:
    """Start a bisect, or go on with the latest one, and print its answer."""
    with (
        patch("lossbisect.train.executors.local.run_recipe", slow),
        patch("lossbisect.bisect.runner.read_curves", read_play),
    ):
        if ids:
            result = resume_bisect(ids[0], work_dir=Path(work_dir))
        else:
            result = bisect_range(Path(repo), good, bad, work_dir=Path(work_dir))
    assert result.culprit is not None
    print(result.answer.value, result.culprit.commit.sha)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
