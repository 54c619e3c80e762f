"""``lossbisect mcore``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.cli.options import Decorator

if TYPE_CHECKING:
    from lossbisect.assist.mcore import SwitchPlan

__all__ = ["command"]

_EXIT_CODES = (
    "Exit codes: 0, or 2 for wrong usage, a submodule that can't be left as it is, or a failure of lossbisect."
)

repo_option: Decorator = click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="PATH",
    help="Megatron Bridge checkout.  [default: .]",
)
plan_option: Decorator = click.option(
    "--plan", "is_plan", is_flag=True, help="Say what would happen, and do nothing.  [default: do it]"
)


@click.group(epilog=_EXIT_CODES)
def command() -> None:
    """Show or switch the Megatron-LM that a Bridge checkout uses, its submodule, and switch it back.

    Changed files are refused, never stashed or overwritten, and what was checked out before is on record.

    Example: lossbisect mcore use dev --repo ~/Megatron-Bridge
    """


@command.command("status", epilog=_EXIT_CODES)
@repo_option
def status(repo: Path) -> int:
    """Show what is checked out, what Bridge wants, and its two pins.

    Example: lossbisect mcore status --repo ~/Megatron-Bridge
    """
    from lossbisect.assist.mcore import position
    from lossbisect.report.mcore import status_text

    click.echo(status_text(position(repo)))
    return 0


@command.command("use", epilog=_EXIT_CODES)
@click.argument("commit", metavar="main|dev|COMMIT")
@repo_option
@plan_option
def use(commit: str, repo: Path, *, is_plan: bool) -> int:
    """Switch to one of Bridge's pins, or to any commit of Megatron-LM.

    'main' and 'dev' are the commits in Bridge's .main.commit and .dev.commit. COMMIT is a SHA, tag, branch, release
    such as 0.15.0, bridge:REV for the commit that Bridge wants at its own REV, or pull/N for the newest commit of a
    pull request. A commit that is here needs no network; a full SHA that isn't, and pull/N, are fetched.

    Example: lossbisect mcore use pull/4057 --repo ~/Megatron-Bridge
    """
    from lossbisect.assist.mcore import plan_switch

    return _carry_out(plan_switch(repo, commit), is_plan=is_plan)


@command.command("sync", epilog=_EXIT_CODES)
@repo_option
@plan_option
def sync(repo: Path, *, is_plan: bool) -> int:
    """Switch to the commit that Bridge wants, such as after a pull.

    Example: lossbisect mcore sync --repo ~/Megatron-Bridge
    """
    from lossbisect.assist.mcore import plan_sync

    return _carry_out(plan_sync(repo), is_plan=is_plan)


@command.command("restore", epilog=_EXIT_CODES)
@repo_option
@plan_option
def restore(repo: Path, *, is_plan: bool) -> int:
    """Take the last switch back; again to take back the one before.

    Example: lossbisect mcore restore --repo ~/Megatron-Bridge
    """
    from lossbisect.assist.mcore import plan_restore

    return _carry_out(plan_restore(repo), is_plan=is_plan)


def _carry_out(plan: "SwitchPlan", *, is_plan: bool) -> int:
    from lossbisect.assist.mcore import switch
    from lossbisect.report.mcore import done_text, plan_text

    click.echo(plan_text(plan))
    if not is_plan:
        click.echo(done_text(switch(plan)))
    return 0
