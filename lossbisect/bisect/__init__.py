"""From a range of commits to the one that moved the loss.

Data goes one way: `commits` reads the range, `driver` asks a runner for runs and `judging` for verdicts, `search` says
which commit is next, `state` keeps what is finished, `culprit` is the answer. Only `commits`, `worktree`, `state` and
`runner` touch the world.
"""

from lossbisect.bisect.culprit import Answer, BisectResult
from lossbisect.bisect.driver import Event, EventKind, Runner
from lossbisect.bisect.session import bisect_range, resume_bisect

__all__ = ["Answer", "BisectResult", "Event", "EventKind", "Runner", "bisect_range", "resume_bisect"]
