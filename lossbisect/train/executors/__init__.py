"""Where a run takes place: this machine, Slurm, or wherever a command of the user's takes it.

An executor runs what a `RunSpec` asks for and gives a `RunRecord` back. Failures of the infrastructure are tried again
here, so that nobody else needs to know about them.
"""

from lossbisect.train.executors.base import Executor
from lossbisect.train.executors.choose import open_executor
from lossbisect.train.executors.options import ExecutorName, ExecutorOptions

__all__ = ["Executor", "ExecutorName", "ExecutorOptions", "open_executor"]
