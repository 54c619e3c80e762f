"""Options of the commands that look at logs. Nothing here knows of training, so that these commands start fast."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from lossbisect.compare import Repeats

__all__ = [
    "LOG_PATH",
    "Decorator",
    "checked_tolerance",
    "command_line",
    "html_option",
    "json_option",
    "page_path",
    "plot_option",
    "read_repeats",
    "repeat_candidate_option",
    "repeat_option",
    "tolerance_option",
]

type Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

LOG_PATH = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
"""A log that is there."""


def checked_tolerance(_context: click.Context, _parameter: click.Parameter, value: str) -> float | None:
    """A callback: the relative tolerance that an option asks for; None for 'auto'.

    Raises:
        BadParameter: It is none.
    """
    from lossbisect.compare import parse_tolerance

    try:
        return parse_tolerance(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _plot_path(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a plot that couldn't be written before any work is done."""
    if value is not None:
        from lossbisect.report.plot import check_plot_path

        try:
            check_plot_path(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return value


def page_path(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a page that couldn't be written before any work is done."""
    if value is not None:
        from lossbisect.report.html.origin import check_page_path

        try:
            check_page_path(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return value


def command_line() -> tuple[str, ...]:
    """The words after ``lossbisect`` of this call, for a report's "once more"."""
    return click.get_current_context().find_object(tuple) or ()


def read_repeats(baseline: tuple[Path, ...], candidate: tuple[Path, ...] = ()) -> "Repeats":
    """The logs of further runs of either side."""
    from lossbisect.compare import Repeats
    from lossbisect.parsers import read_log

    return Repeats(
        baseline=tuple(read_log(path) for path in baseline), candidate=tuple(read_log(path) for path in candidate)
    )


repeat_option: Decorator = click.option(
    "--repeat",
    "repeats",
    type=LOG_PATH,
    multiple=True,
    metavar="LOG",
    help="Log of another run of the baseline's set-up, as often as there are any: they measure its noise.",
)
repeat_candidate_option: Decorator = click.option(
    "--repeat-candidate",
    "candidate_repeats",
    type=LOG_PATH,
    multiple=True,
    metavar="LOG",
    help="Log of another run of the candidate's set-up, as often as there are any.",
)
tolerance_option: Decorator = click.option(
    "--tolerance",
    default="auto",
    show_default=True,
    callback=checked_tolerance,
    metavar="auto|exact|rtol=NUMBER",
    help="What counts as the same: 'auto' what the repeats show, or without any what the runs' number format explains; "
    "'exact' every digit; 'rtol=1e-5' a relative difference up to that number.",
)
plot_option: Decorator = click.option(
    "--plot",
    type=click.Path(path_type=Path),
    callback=_plot_path,
    metavar="FILE.png|svg|pdf",
    help="Draw both curves and their difference into this file.  [default: no plot]",
)
html_option: Decorator = click.option(
    "--html",
    type=click.Path(path_type=Path),
    callback=page_path,
    metavar="FILE.html",
    help="Write a page with curves to zoom and all evidence into this one file.  [default: no page]",
)
json_option: Decorator = click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON object instead of text.  [default: text]"
)
