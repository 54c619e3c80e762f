"""What is to blame for a failure."""

from enum import StrEnum

__all__ = ["Cause"]


class Cause(StrEnum):
    """What is to blame for a run that didn't finish. No failure of any cause is a change of the loss."""

    INFRASTRUCTURE = "infrastructure"
    """A node, a network, a disk, a driver, a queue: the same run may finish elsewhere or later."""
    OWN = "the run's own"
    """The code, its settings, or memory that doesn't suffice: it would fail again."""
    UNKNOWN = "unknown"
    """Either may be: it isn't tried again, and nothing is concluded."""
