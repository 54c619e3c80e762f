"""Which versions go together over a range of commits, read from each commit's own files. Only reads."""

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.assist.gitfacts import PINS, Kind, kind_of
from lossbisect.assist.pins import FILES, Pins, read_pins
from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.bisect.repository import ask, is_ancestor, open_repository
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["Together", "compatibility", "periods", "together_at"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Together:
    """What goes together at one commit.

    Attributes:
        kind: ``bridge`` or ``megatron-lm``.
        commit: Full SHA of that repository.
        date: Its commit date, ISO 8601.
        pins: What its own files ask for.
        mcore: Commit of Megatron-LM that Bridge pins; the commit itself for Megatron-LM.
        mcore_pins: What that commit asks for; None where it isn't in this clone.
        dev: Commit of Megatron-LM that ``.dev.commit`` names.
    """

    kind: Kind
    commit: str
    date: str
    pins: Pins
    mcore: str
    mcore_pins: Pins | None
    dev: str | None = None

    @property
    def versions(self) -> tuple[str | None, ...]:
        """Everything but commits and dates: what has to change for a new period to begin."""
        core = self.mcore_pins or Pins()
        return (
            self.pins.version,
            self.mcore_version,
            self.pins.python or core.python,
            self.torch,
            self.cuda,
            self.transformer_engine,
            self.image,
        )

    @property
    def mcore_version(self) -> str | None:
        """Megatron-Core's version, by its own files or, before it was a submodule, by Bridge's lock."""
        return self.mcore_pins.version if self.mcore_pins else self.pins.mcore_locked

    @property
    def torch(self) -> str | None:
        """The version of torch in the lock, or else what is asked for."""
        return self.pins.torch_locked or self.pins.torch or (self.mcore_pins or Pins()).torch

    @property
    def cuda(self) -> str | None:
        """CUDA that the commit's own lock names, or else Megatron-Core's."""
        return self.pins.cuda or (self.mcore_pins or Pins()).cuda

    @property
    def transformer_engine(self) -> str | None:
        """Transformer Engine in the lock, or else as asked for."""
        core = self.mcore_pins or Pins()
        pins = (self.pins, core)
        locked = next((each.transformer_engine_locked for each in pins if each.transformer_engine_locked), None)
        return locked or next((each.transformer_engine for each in pins if each.transformer_engine), None)

    @property
    def image(self) -> str | None:
        """The image that the commit's own Docker file names, or else Megatron-Core's."""
        return self.pins.image or (self.mcore_pins or Pins()).image


def together_at(path: Path, commit: str) -> Together:
    """What goes together at one commit of the checkout that holds ``path``.

    Raises:
        GitError: There is no such checkout or commit.
    """
    with closing(open_repository(path)) as repo:
        return next(_read(repo, [_commit(repo, commit)]))


def compatibility(path: Path, first: str, last: str) -> Iterator[Together]:
    """What goes together from ``first`` to ``last``, both included, at each commit that changes a pin, oldest first.

    Commits are those along the first parents of ``last``. Where ``first`` is on another branch, such as a release's,
    they begin after the two branches parted.

    Raises:
        GitError: There is no such checkout or commit, or ``last`` comes before ``first``.
    """
    with closing(open_repository(path)) as repo:
        ends = [_commit(repo, name) for name in (first, last)]
        if ends[0] != ends[1] and is_ancestor(repo, ends[1], ends[0]):
            raise GitError(f"{path}: {last} comes before {first}. Swap them: lossbisect compat {last}..{first}")
        files = [*FILES, SUBMODULE, *PINS.values()]
        line = ask(repo, "rev-list", "--first-parent", "--reverse", f"{ends[0]}..{ends[1]}", "--", *files).split()
        yield from _read(repo, list(dict.fromkeys([ends[0], *line, ends[1]])))


def periods(rows: Iterable[Together]) -> tuple[tuple[Together, ...], ...]:
    """The rows in runs of equal versions: within one only commits of Megatron-LM change."""
    runs: list[list[Together]] = []
    for row in rows:
        if runs and row.versions == runs[-1][-1].versions:
            runs[-1].append(row)
        else:
            runs.append([row])
    return tuple(tuple(run) for run in runs)


def _read(repo: "Repo", shas: list[str]) -> Iterator[Together]:
    """Each commit's pins."""
    import git

    root = Path(repo.working_tree_dir or repo.common_dir)
    kind = kind_of(repo, root)
    outer = _Files(repo)
    inner: _Files | None = None
    if kind == "bridge":
        with suppress(git.InvalidGitRepositoryError, git.NoSuchPathError):
            inner = _Files(git.Repo(root / SUBMODULE, search_parent_directories=False, expand_vars=False))
    try:
        for sha in shas:
            pins, tree = outer.pins(sha)
            mcore = tree.get(SUBMODULE) or pins.mcore_commit or "" if kind == "bridge" else sha
            yield Together(
                kind=kind,
                commit=sha,
                date=ask(repo, "show", "--no-patch", "--format=%cI", sha),
                pins=pins,
                mcore=mcore,
                mcore_pins=pins if kind == "megatron-lm" else _mcore_pins(inner, mcore),
                dev=(outer.text(PINS["dev"], tree[PINS["dev"]]).strip() or None) if PINS["dev"] in tree else None,
            )
    finally:
        if inner is not None:
            inner.repo.close()


class _Files:
    """The files of one repository's commits. One that stays the same from commit to commit is read once."""

    def __init__(self, repo: "Repo") -> None:
        self.repo = repo
        self._texts: dict[str, tuple[str, str]] = {}
        self._pins: dict[tuple[str, ...], Pins] = {}

    def pins(self, sha: str) -> tuple[Pins, dict[str, str]]:
        """What a commit asks for, and the object names of its files by path."""
        paths = (*FILES, SUBMODULE, *PINS.values())
        listed = ask(self.repo, "ls-tree", "-z", "--full-tree", sha, "--", *paths)
        rows = (row.partition("\t") for row in listed.split("\0") if row)
        tree = {path: about.split()[2] for about, _, path in rows}
        key = tuple(tree.get(path, "") for path in FILES)
        if key not in self._pins:
            self._pins[key] = read_pins(lambda path: self.text(path, tree[path]) if path in tree else None)
        return self._pins[key], tree

    def text(self, path: str, name: str) -> str:
        """A file's text by its object name."""
        if self._texts.get(path, ("", ""))[0] != name:
            self._texts[path] = (name, ask(self.repo, "cat-file", "blob", name))
        return self._texts[path][1]


def _mcore_pins(files: _Files | None, sha: str) -> Pins | None:
    if files is None or not sha:
        return None
    try:
        return files.pins(sha)[0]
    except GitError:  # the commit, or a file of it, isn't in this clone
        return None


def _commit(repo: "Repo", name: str) -> str:
    if not name or name.startswith("-"):
        raise GitError(f"'{name}' is no name of a commit.")
    try:
        return ask(repo, "rev-parse", "--verify", f"{name}^{{commit}}")
    except GitError as error:
        root = Path(repo.working_tree_dir or repo.common_dir)
        inner = f" A commit of Megatron-LM is one of {root / SUBMODULE}." if (root / SUBMODULE).exists() else ""
        raise GitError(f"{root}: no commit '{name}' here. Is it fetched?{inner}") from error
