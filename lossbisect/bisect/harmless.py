"""Commits that change nothing that could move a loss, by their looks: a reason for doubt, never for passing them over.

Nothing here decides what is run. A commit is named because its curve differs; if it looks as if it couldn't have done
that, its runs are made once more and the answer says so.
"""

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lossbisect.bisect.commits import changed_files
from lossbisect.bisect.repository import ask
from lossbisect.bisect.types import CommitInfo, FileChange
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["harmless_files", "looks_harmless"]

_UNREAD = re.compile(
    r"^(docs?|tests?|\.github|\.gitlab|skills)/"
    r"|(^|/)(CODEOWNERS|LICENSE|\.gitignore|\.gitlab-ci\.yml|\.pre-commit-config\.yaml|\.coderabbit\.yaml|codecov\.yml)$"
    r"|\.(md|rst)$"
)
_PRINTS = re.compile(r"^(print\w*|warn\w*|debug|info|warning|error|exception|critical|log|log_\w+)$")


def harmless_files(files: Iterable[FileChange]) -> bool:
    """Whether all of them are documentation, tests or CI; a commit without files changes nothing either."""
    return all(_UNREAD.search(file.path) for file in files)


def looks_harmless(repo: "Repo", commit: CommitInfo) -> str | None:
    """What a commit changes, if that is only what no loss depends on; None if it changes anything else.

    Python files count as unchanged if their syntax trees are, comments, docstrings and calls that only print left out.
    """
    files = changed_files(repo, commit)
    if harmless_files(files):
        return "documentation, tests or CI, which no training run reads"
    if not commit.parents:
        return None
    for file in files:
        if _UNREAD.search(file.path):
            continue
        if file.status != "modified" or not file.path.endswith(".py"):
            return None
        before, after = (_meaning(repo, sha, file.path) for sha in (commit.parents[0], commit.sha))
        if before is None or before != after:
            return None
    return "comments, docstrings or printing"


def _meaning(repo: "Repo", sha: str, path: str) -> str | None:
    try:
        tree = ast.parse(ask(repo, "show", f"{sha}:{path}"))
    except (GitError, SyntaxError, ValueError):
        return None
    return ast.dump(_Silenced().visit(tree))


class _Silenced(ast.NodeTransformer):
    """Leaves out strings that stand alone, and calls that print and whose result nobody uses."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant) or (isinstance(node.value, ast.Call) and _is_print(node.value)):
            return ast.Pass()
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, name, None), list):
                kept = [each for each in block if not isinstance(each, ast.Pass)]
                setattr(node, name, kept)
        return node


def _is_print(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return bool(_PRINTS.match(name))
