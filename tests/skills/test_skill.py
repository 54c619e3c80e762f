"""The skill for coding agents: complete, and every command in it is one that runs."""

import re
import shlex
from pathlib import Path

import click
import pytest

from lossbisect.cli import cli
from lossbisect.errors import LossbisectError
from tests.assist.support import call

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "skills/lossbisect/SKILL.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (lossbisect [^\n]+)$", TEXT, re.MULTILINE)
LOGS = {
    "baseline.log": "fixtures/real/mlm-main-2026-08-1rank.log",
    "candidate.log": "fixtures/real/mlm-main-2026-08-1rank-adam-eps-1e-5.log",
}
RUNS_ANYWHERE = ("compare", "parse", "explain", "recipe", "recommend", "translate")
"""Commands that need neither a checkout nor a GPU: these run here; of the others the arguments are parsed."""


def test_it_is_complete() -> None:
    """The skill has name, description, version, instructions, examples, limits and a change record of that version."""
    head = re.match(r"---\n(.*?)\n---\n", TEXT, re.DOTALL)
    assert head is not None
    fields = dict(line.split(": ", 1) for line in head[1].splitlines())
    assert fields["name"] == "lossbisect"
    assert 40 < len(fields["description"]) < 1024
    for title in ("Instructions", "Examples", "Limits", "Change record"):
        assert f"\n## {title}\n" in TEXT
    assert f"\n- {fields['version']}:" in TEXT
    assert len(COMMANDS) >= 12


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_parses(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command exists and takes the arguments that it's given."""
    monkeypatch.chdir(ROOT)
    words = [LOGS.get(word, word) for word in shlex.split(line)[1:]]
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and not words[0].startswith("-"):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, name
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.make_context("lossbisect", words)


@pytest.mark.parametrize(
    "line", [line for line in COMMANDS if line.split()[1] in RUNS_ANYWHERE and "train.sh" not in line]
)
def test_commands_without_a_checkout_run(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that need only files end with a result, not with a failure of ours."""
    monkeypatch.chdir(ROOT)
    words = [LOGS.get(word, word) for word in shlex.split(line)[1:]]
    if words[0] == "recommend" and "--change" not in words:
        _needs_bridge()
    done = call(*words)
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.strip()


def _needs_bridge() -> None:
    from lossbisect.assist.recommend import find_bridge

    try:
        find_bridge(None)
    except LossbisectError as error:
        pytest.skip(str(error))
