"""The README tells the truth: its output is the tool's, its commands and links exist."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lossbisect.cli import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_shown_comparison_is_what_the_tool_prints() -> None:
    """The compare example, run again, prints the README's lines to the letter."""
    found = re.search(r"```console\n\$ lossbisect (compare [^\n]+)\n(.*?)```", README, re.DOTALL)
    assert found is not None
    command = [sys.executable, "-m", "lossbisect", *shlex.split(found[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert done.stdout.strip() == found[2].strip()


def test_every_command_named_exists() -> None:
    """Each `lossbisect NAME` of the README is a command, and each command is in the README."""
    named = set(re.findall(r"lossbisect (\w+)", README)) - {"tells", "itself", "import"}
    known = set(cli.list_commands(click.Context(cli)))
    assert named - known == set()
    assert known - named == set()


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """Every relative link of a page is a file of the project."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_make_targets_named_exist() -> None:
    """Each `make NAME` of the README is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make (\w+)", README)) - {"and"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
