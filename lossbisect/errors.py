"""The exception tree.

::

    LossbisectError             any failure of ours; the command line prints its message and exits 2 (judge: 128)
    ├── ParseError              a log that can't be read, or holds no training row
    │   └── UnknownFormatError  nothing in the file looks like a log we know
    ├── AlignmentError          two curves have no iteration in common, or can't be laid over each other
    ├── GitError                a repository, commit or range that isn't what was said
    ├── RecipeError             a recipe that can't be read, or that a trainer can't express
    ├── TrainerError            the set-up for a run is incomplete: no interpreter, no torch, no trainer script
    ├── RunCancelledError       a run was ended because its executor was told to stop; it says nothing about its commit
    ├── StoreError              the run store can't be opened or written, or has no such run
    ├── StateError              a bisect's journal is missing, held by another process, or belongs to another bisect
    └── EndpointError           an end of the range can't be trusted: it fails, or the good end doesn't repeat itself

A message says where, what, and what to do next. A failed or timed-out *training run* is no exception: it is a
`RunRecord` whose outcome says so.
"""

__all__ = [
    "AlignmentError",
    "EndpointError",
    "GitError",
    "LossbisectError",
    "ParseError",
    "RecipeError",
    "RunCancelledError",
    "StateError",
    "StoreError",
    "TrainerError",
    "UnknownFormatError",
]


class LossbisectError(Exception):
    """Base of every error that this package raises on purpose."""


class ParseError(LossbisectError):
    """A log that can't be read, or holds no training row."""


class UnknownFormatError(ParseError):
    """Nothing in the file looks like a log that lossbisect knows."""


class AlignmentError(LossbisectError):
    """Two curves that can't be laid over each other."""


class GitError(LossbisectError):
    """A repository, commit or range that isn't what was said."""


class RecipeError(LossbisectError):
    """A recipe that can't be read, or that a trainer can't express."""


class TrainerError(LossbisectError):
    """The set-up for a run is incomplete."""


class RunCancelledError(LossbisectError):
    """A run was ended by us, such as after Ctrl-C: no record, and nothing to conclude."""


class StoreError(LossbisectError):
    """The run store can't be opened or written, or has no such run."""


class StateError(LossbisectError):
    """A bisect's journal is missing, held by another process, or belongs to another bisect."""


class EndpointError(LossbisectError):
    """An end of the range can't be trusted."""
