"""How a bisection of several stages came to its answer."""

from dataclasses import dataclass

from lossbisect.bisect.scope import StageKind
from lossbisect.bisect.types import CommitInfo

__all__ = ["Passage"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """What one stage showed, on the way to the answer.

    Attributes:
        kind: What it looked for.
        id: Its journal; ``lossbisect bisect log ID`` prints its runs.
        text: What it showed, one or two sentences.
        commit: The commit that it came to, or None.
    """

    kind: StageKind
    id: str
    text: str
    commit: CommitInfo | None = None
