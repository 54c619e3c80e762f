"""The command line: options to one library call to print. One module a command, loaded when the command is used."""

import gc
import os
import sys
from importlib import import_module

import click

from lossbisect import __version__
from lossbisect.errors import LossbisectError
from lossbisect.report.plain import printable

__all__ = ["main"]

FAILURE = 2
"""Exit code of every failure of ours; ``judge`` turns it into 128."""

_OBJECTS_A_COLLECTION = 100_000
"""New objects after which Python looks for garbage: at its usual 700 that is a twentieth of a start, and finds none."""

_COMMANDS = {
    "ack": "Say that a commit was meant to move the loss.",
    "advance": "Say how far Megatron-Core can be moved without the loss changing.",
    "axes": "Say which part of two set-ups makes the difference.",
    "bisect": "Name the Megatron-Core commit that moved the loss.",
    "clean": "Move folders of earlier runs aside, and back.",
    "changelog": "List every commit between two that changed the loss.",
    "compare": "Say whether two logs show the same loss, and since when not.",
    "compat": "Show which versions go together over a range of commits.",
    "correlate": "Run Megatron-LM and Bridge at one commit and compare them.",
    "demo": "Bisect a made-up history of real Megatron-Core, on this machine's CPU.",
    "doctor": "Look for what makes a run something else than it seems to be.",
    "explain": "Walk the checklist of a loss that diverged after a commit.",
    "history": "Show the curves that 'triage' recorded, over commits.",
    "hook": "Triage each new commit in the background, by git's own hooks.",
    "judge": "Judge the checked-out commit for 'git bisect run'.",
    "mcore": "Show or switch the Megatron-LM that a Bridge checkout uses.",
    "open": "Show the report of a bisect, a run or a triage in the browser.",
    "parse": "Read training logs and show or convert their rows.",
    "recipe": "List, show and render correlation recipes.",
    "recommend": "Say which recipe of Bridge to run, on which sizes, and whether it fits.",
    "report": "Make the report of a bisect, a run or a triage again.",
    "run": "Train a correlation recipe at one commit.",
    "runs": "List, show, export and prune the stored runs.",
    "serve": "Show histories, bisects and runs as a small site.",
    "suite": "Run several recipes one after another.",
    "triage": "Say what the newest commit did to the loss, and whose commit moved it.",
    "translate": "Translate Megatron-LM's arguments into Bridge's overrides, or back.",
    "watch": "Follow a growing log and stop at the first sure divergence.",
}


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are used: help and ``compare`` start at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"lossbisect.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="lossbisect")
def cli() -> None:
    """Compare Megatron loss curves, and bisect Megatron-Core to the commit that moved them.

    Example: lossbisect compare megatron-lm.log bridge.log
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit with its code; every failure of ours is one line on stderr."""
    arguments = sys.argv[1:] if argv is None else argv
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    code = _run(arguments)
    if arguments[:1] == ["judge"] and code not in (0, 1, 125):
        code = 128  # under 'git bisect run' a 2 would be read as "bad"
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    try:
        color = False if os.environ.get("NO_COLOR") else None
        result = cli.main(
            args=arguments, prog_name="lossbisect", standalone_mode=False, obj=tuple(arguments), color=color
        )
    except click.ClickException as error:
        click.echo(f"Error: {error.format_message()}{_where_to_look(error)}", err=True)
        return FAILURE
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return 130
    except LossbisectError as error:
        click.echo(f"Error: {printable(str(error))}", err=True)
        return FAILURE
    except BrokenPipeError:
        return FAILURE
    except Exception as error:
        return _report_bug(error)
    return result if isinstance(result, int) else 0


def _where_to_look(error: click.ClickException) -> str:
    """For wrong usage the help to read, on the same line."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f" See '{context.command_path} --help'." if context else ""


def _report_bug(error: Exception) -> int:
    """One line on the terminal, the traceback in a file: a bug of ours must not look like a verdict."""
    import tempfile
    import traceback

    from lossbisect.redact import redact

    handle, path = tempfile.mkstemp(prefix="lossbisect-bug-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(redact("".join(traceback.format_exception(error))))
    click.echo(
        f"Error: a bug in lossbisect ({type(error).__name__}: {error}). Nothing was concluded. "
        f"The details are in {path}; please send them in.",
        err=True,
    )
    return FAILURE
