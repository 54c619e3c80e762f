"""From options to an executor."""

from lossbisect.train.executors.base import Executor
from lossbisect.train.executors.options import ExecutorName, ExecutorOptions
from lossbisect.train.executors.retry import RetryingExecutor

__all__ = ["open_executor"]


def open_executor(options: ExecutorOptions | None = None) -> Executor:
    """The executor that the options name (by default this machine, one run at a time); to be closed after use.

    Raises:
        TrainerError: It isn't there, or an option of it is wrong.
    """
    options = options or ExecutorOptions()
    return RetryingExecutor(_open(options), retries=options.retries)


def _open(options: ExecutorOptions) -> Executor:
    if options.name is ExecutorName.SLURM:
        from lossbisect.train.executors.slurm import SlurmExecutor

        return SlurmExecutor(options)
    if options.name is ExecutorName.COMMAND:
        from lossbisect.train.executors.command import CommandExecutor

        return CommandExecutor(options)
    from lossbisect.train.executors.local import LocalExecutor

    return LocalExecutor(jobs=options.slots)
