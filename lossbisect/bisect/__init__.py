"""From a range of commits to the one that moved the loss.

Data goes one way: `commits` reads the range, `driver` asks a runner for runs and `judging` for verdicts, `agenda` says
which runs are next (by halving in `search`, or by probability in `posterior`), `state` keeps what is finished,
`culprit` is the answer. Only `commits`, `worktree`, `state` and `runner` touch the world.

The public names are loaded when they are first used: the arithmetic of the search needs none of the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lossbisect.bisect.culprit import Answer, BisectResult
    from lossbisect.bisect.events import Event, EventKind, Runner
    from lossbisect.bisect.session import bisect_range, resume_bisect

__all__ = ["Answer", "BisectResult", "Event", "EventKind", "Runner", "bisect_range", "resume_bisect"]

_HOME = {
    "Answer": "culprit",
    "BisectResult": "culprit",
    "Event": "events",
    "EventKind": "events",
    "Runner": "events",
    "bisect_range": "session",
    "resume_bisect": "session",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'lossbisect.bisect' has no attribute {name!r}")
    return getattr(import_module(f"lossbisect.bisect.{_HOME[name]}"), name)
