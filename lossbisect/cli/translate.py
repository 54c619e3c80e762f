"""``lossbisect translate``."""

import shlex
import sys
from pathlib import Path

import click

from lossbisect.cli.options import json_option

__all__ = ["command"]


@click.command(
    epilog="Exit codes: 0, or 2 for wrong usage, an input that can't be read, or an argument that changes the loss and "
    "has no equivalent."
)
@click.argument("words", nargs=-1, metavar="FILE|WORDS...", type=click.UNPROCESSED)
@click.option(
    "--to",
    type=click.Choice(["bridge", "mlm"]),
    help="Whose words to write.  [default: the other side's than the input's]",
)
@click.option(
    "--emit",
    "form",
    type=click.Choice(["overrides", "command", "recipe"]),
    default="overrides",
    show_default=True,
    help="One setting a line, a launch command, or a file that runs by itself.",
)
@click.option("--allow-lossy", is_flag=True, help="Leave out what changes the loss and has no equivalent.")
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable that a script doesn't set; @ for its arguments. Repeatable.",
)
@click.option(
    "--line",
    "line_no",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Where the command begins, for a script with several that train.",
)
@click.option(
    "--num-processes",
    type=click.IntRange(min=1),
    metavar="COUNT",
    help="Processes that train, for the global batch size.  [default: what the input's launcher says]",
)
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="PATH",
    help="Bridge checkout with its submodule, whose sources tell both sides' arguments. Only read.  [default: the "
    "installed packages]",
)
@click.option("--all", "is_long", is_flag=True, help="Tell the fate of each argument, not only of those to look at.")
@json_option
def command(
    words: tuple[str, ...],
    to: str | None,
    form: str,
    given: tuple[str, ...],
    line_no: int | None,
    num_processes: int | None,
    repo: Path | None,
    *,
    allow_lossy: bool,
    is_long: bool,
    is_json: bool,
) -> int:
    """Translate Megatron-LM's arguments into Bridge's overrides, or back.

    FILE is a shell script, a YAML of arguments, a file of overrides, or a log (its dump of the configuration counts); -
    is the standard input. WORDS are the arguments themselves, after a --. Overrides are for Bridge's recipe
    vanilla_gpt_pretrain_config. They go to the standard output, what becomes of each argument to the standard error.

    Example: lossbisect translate train.sh --emit command
    """
    from lossbisect.assist.translate import Way, refusal, translate
    from lossbisect.assist.translate.emit import Form, emit
    from lossbisect.errors import RecipeError
    from lossbisect.report.translate import translation_json, translation_text

    text, source = _input(words)
    translation, facts = translate(
        text,
        source=source,
        way=Way(f"to-{to}") if to else None,
        repo=repo,
        given=dict(_pair(item) for item in given),
        num_processes=num_processes,
        line_no=line_no,
        folder=Path(source).parent if Path(source).is_file() else None,
    )
    click.echo(translation_text(translation, is_long=is_long), err=True)
    why_not = refusal(translation)
    if why_not and not allow_lossy:
        raise RecipeError(f"{source}: {why_not}")
    written = emit(translation, facts, Form(form))
    click.echo(translation_json(translation, written) if is_json else written)
    return 0


def _pair(item: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--set {item}: say NAME=VALUE.")
    return name, value


def _input(words: tuple[str, ...]) -> tuple[str, str]:
    """The text to translate, and what to call it."""
    if not words:
        raise click.UsageError("Give a FILE, - for the standard input, or the arguments themselves after a '--'.")
    if words == ("-",):
        return sys.stdin.read(), "standard input"
    if len(words) == 1 and not words[0].startswith("--") and "=" not in words[0]:
        path = Path(words[0])
        if not path.is_file():
            raise click.UsageError(f"{path}: no such file. Arguments themselves stand after a '--'.")
        return path.read_text(encoding="utf-8", errors="replace"), str(path)
    return shlex.join(words), "arguments"
