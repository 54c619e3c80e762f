"""Compare Megatron loss curves, and bisect Megatron-Core to the commit that moved them.

The public names are loaded when they are first used, so that ``import lossbisect`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lossbisect.bisect import BisectResult, bisect_range, resume_bisect
    from lossbisect.compare import Group, Repeats, compare_groups, compare_logs, stored_noise
    from lossbisect.compare.types import Comparison, Judgement, Verdict
    from lossbisect.errors import LossbisectError
    from lossbisect.parsers import read_log
    from lossbisect.parsers.runlog import RunLog

__all__ = [
    "BisectResult",
    "Comparison",
    "Group",
    "Judgement",
    "LossbisectError",
    "Repeats",
    "RunLog",
    "Verdict",
    "bisect_range",
    "compare_groups",
    "compare_logs",
    "read_log",
    "resume_bisect",
    "stored_noise",
]
__version__ = "0.1.0"

_HOME = {
    "BisectResult": "lossbisect.bisect",
    "Comparison": "lossbisect.compare.types",
    "Judgement": "lossbisect.compare.types",
    "LossbisectError": "lossbisect.errors",
    "bisect_range": "lossbisect.bisect",
    "compare_groups": "lossbisect.compare",
    "compare_logs": "lossbisect.compare",
    "Group": "lossbisect.compare",
    "Repeats": "lossbisect.compare.types",
    "stored_noise": "lossbisect.compare",
    "RunLog": "lossbisect.parsers.runlog",
    "Verdict": "lossbisect.compare.types",
    "read_log": "lossbisect.parsers",
    "resume_bisect": "lossbisect.bisect",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'lossbisect' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
