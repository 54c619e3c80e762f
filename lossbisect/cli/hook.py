"""``lossbisect hook``."""

import os
from pathlib import Path

import click

from lossbisect.cli.options import Decorator, python_option

__all__ = ["command"]

_repo: Decorator = click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    metavar="PATH",
    help="Megatron-LM or Megatron Bridge checkout; of Bridge its submodule's hooks are meant too.",
)
_suite: Decorator = click.option(
    "--suite",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What is trained.  [default: lossbisect.toml of the checkout, or else one dense recipe]",
)
_notify: Decorator = click.option(
    "--notify",
    "notify_command",
    metavar="COMMAND",
    help="Run this with the report, as Markdown, on its standard input when there is news.",
)


@click.group(epilog="Exit codes: those of its commands.")
def command() -> None:
    """Triage each new commit in the background, by git's own hooks.

    Example: lossbisect hook install --repo ~/Megatron-LM
    """


@command.command("install", epilog="Exit codes: 0 installed, 2 wrong usage or a failure of lossbisect itself.")
@_repo
@_suite
@python_option
@_notify
def install_hooks(repo: Path, suite: Path | None, python: Path | None, notify_command: str | None) -> int:
    """Install the hooks post-commit, post-merge and post-checkout. Hooks that are there are kept and run first.

    Example: lossbisect hook install --repo ~/Megatron-LM --notify 'mail -s "Loss moved" me'
    """
    from lossbisect.bisect.codebase import open_codebase
    from lossbisect.triage.hook import install, place_of

    options = [
        *(("--suite", str(suite.absolute())) if suite else ()),
        *(("--python", str(python.absolute())) if python else ()),
        *(("--notify", notify_command) if notify_command else ()),
    ]
    for file in install(repo, tuple(options)):
        click.echo(f"Installed {file}")
    with open_codebase(repo, allow_dirty=True) as code:
        click.echo(f"Each new commit is triaged in the background; its log: {place_of(code.root).log}")
    return 0


@command.command(
    "remove", epilog="Exit codes: 0 removed or none there, 2 wrong usage or a failure of lossbisect itself."
)
@_repo
def remove_hooks(repo: Path) -> int:
    """Take the hooks away, and put those back that were there before.

    Example: lossbisect hook remove --repo ~/Megatron-LM
    """
    from lossbisect.triage.hook import remove

    changed = remove(repo)
    for file in changed:
        click.echo(f"{'Put back' if file.exists() else 'Removed'} {file}")
    if not changed:
        click.echo("There is no hook of lossbisect.")
    return 0


@command.command("run", hidden=True, epilog="Exit codes: 0 done, or left to the process that is at it; 2 a failure.")
@_repo
@_suite
@python_option
@_notify
def run_hook(repo: Path, suite: Path | None, python: Path | None, notify_command: str | None) -> int:
    """Triage the newest commit, as a hook does: one at a time, into the log.

    Example: lossbisect hook run --repo ~/Megatron-LM
    """
    from datetime import UTC, datetime

    from lossbisect.bisect.codebase import open_codebase
    from lossbisect.errors import LossbisectError
    from lossbisect.report.plain import printable
    from lossbisect.report.triage import triage_text
    from lossbisect.report.triage_files import triage_markdown
    from lossbisect.triage.hook import background, place_of, trimmed
    from lossbisect.triage.notify import notify
    from lossbisect.triage.run import triage

    with open_codebase(repo, allow_dirty=True) as code:
        root = code.root
    place = place_of(root)
    place.folder.mkdir(parents=True, exist_ok=True)
    os.nice(10)

    def work() -> None:
        trimmed(place.log)
        with place.log.open("a", encoding="utf-8") as log:

            def say(text: str) -> None:
                log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {printable(text)}\n")
                log.flush()

            try:
                report = triage(root, since_last=True, suite=suite, python=python, say=say)
            except LossbisectError as error:
                say(f"Error: {error}")
                return
            if report is None:
                return
            say(triage_text(report))
            if report.is_news and notify_command and (complaint := notify(notify_command, triage_markdown(report))):
                say(complaint)

    background(root, work)
    return 0
