"""The `lossbisect` command, with the seconds that it spends on checkouts and on decisions written down at its end.

    python benchmarks/timed.py FILE WORD...

``FILE`` gets one JSON object: seconds of wall time by phase, added up over all threads.
"""

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from lossbisect.bisect.desk import Desk
from lossbisect.bisect.worktree import WorkTree
from lossbisect.cli import main

_spent: defaultdict[str, float] = defaultdict(float)
_lock = threading.Lock()


def _timed(phase: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(inner)
    def outer(*arguments: Any, **options: Any) -> Any:
        started_s = time.monotonic()
        try:
            return inner(*arguments, **options)
        finally:
            with _lock:
                _spent[phase] += time.monotonic() - started_s

    return outer


def _install() -> None:
    WorkTree.checkout = _timed("checkout", WorkTree.checkout)  # type: ignore[method-assign]
    perform = Desk.perform

    def perform_timed(self: Desk, agenda: Any, judge: Any, on_step: Any = lambda _: None) -> None:
        perform(self, _timed("decision", agenda), _timed("decision", judge), _timed("decision", on_step))

    Desk.perform = perform_timed  # type: ignore[method-assign]


if __name__ == "__main__":
    file = Path(sys.argv[1])
    sys.argv = ["lossbisect", *sys.argv[2:]]
    _install()
    try:
        main()
    finally:
        file.write_text(json.dumps(_spent), encoding="utf-8")
