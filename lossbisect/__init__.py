"""Compare Megatron loss curves, and bisect Megatron-Core to the commit that moved them.

The public names are loaded when they are first used, so that ``import lossbisect`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lossbisect.compare import compare_logs
    from lossbisect.compare.types import Comparison, Judgement, Verdict
    from lossbisect.errors import LossbisectError
    from lossbisect.parsers import read_log
    from lossbisect.parsers.runlog import RunLog

__all__ = ["Comparison", "Judgement", "LossbisectError", "RunLog", "Verdict", "compare_logs", "read_log"]
__version__ = "0.1.0"

_HOME = {
    "Comparison": "lossbisect.compare.types",
    "Judgement": "lossbisect.compare.types",
    "LossbisectError": "lossbisect.errors",
    "compare_logs": "lossbisect.compare",
    "RunLog": "lossbisect.parsers.runlog",
    "Verdict": "lossbisect.compare.types",
    "read_log": "lossbisect.parsers",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'lossbisect' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
