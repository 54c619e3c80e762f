"""What a bisect looks for: options that several commands share."""

import functools
from collections.abc import Callable
from typing import Any

import click

from lossbisect.bisect.options import DEFAULT_CONFIDENCE, Fixup, Regress, SearchOptions
from lossbisect.cli.number import Number

__all__ = ["search_options"]

_OPTIONS = (
    click.option(
        "--regress",
        type=click.Choice([kind.value for kind in Regress]),
        help="What counts as bad: 'loss' or 'grad-norm' the bad end's curve, 'nan' a value that is no number, whatever "
        "else changes, 'crash' the failure of the bad end, 'repeatability' two runs of a commit that differ, "
        "'throughput' or 'memory' a longer iteration or a higher peak than the good end's.  [default: loss]",
    ),
    click.option(
        "--confidence",
        type=Number(0.5, 1, min_open=True, max_open=True),
        metavar="NUMBER",
        help=f"Probability from which a commit is named where runs don't repeat.  [default: {DEFAULT_CONFIDENCE}]",
    ),
    click.option(
        "--min-effect",
        type=Number(0, 1, min_open=True),
        metavar="NUMBER",
        help="Relative difference up to which curves count as the same, though runs repeat exactly.  [default: none]",
    ),
    click.option(
        "--probe",
        type=click.IntRange(min=0),
        metavar="N",
        help="Commits in between to run before equal ends are taken for an unchanged range, and after the culprit to "
        "see whether it was taken back.  [default: 0]",
    ),
    click.option(
        "--no-prune",
        "no_prune",
        is_flag=True,
        default=None,
        help="Run commits too that change nothing that a neighbour's run read.",
    ),
    click.option(
        "--find-fix",
        is_flag=True,
        default=None,
        help="Find the commit that mended something: --bad names the older, broken end, --good the newer one.",
    ),
    click.option(
        "--skip",
        multiple=True,
        metavar="COMMIT|A..B",
        help="Never run this commit, or those after A up to B; as often as needed.",
    ),
    click.option(
        "--fixup",
        "fixups",
        multiple=True,
        metavar="PATCH|COMMIT[@A..B]",
        help="Run commits of Megatron-LM with a patch file, or with what another commit changed, so that they can be "
        "tested: all that lack it, or those after A up to B; as often as needed. Where it doesn't apply the commit is "
        "skipped.",
    ),
    click.option(
        "--bridge-follows",
        is_flag=True,
        default=None,
        help="Where the frozen Bridge can't load a commit, run it with the Bridge of that commit's day.",
    ),
    click.option(
        "--no-revert",
        "no_revert",
        is_flag=True,
        default=None,
        help="Don't run the bad end with the culprit taken back.",
    ),
    click.option(
        "--all",
        "find_all",
        is_flag=True,
        default=None,
        help="List every commit of the range that changed the numbers; with --regress crash or repeatability, every "
        "one at which that begins or ends.",
    ),
)


def search_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all options of this module, as one argument ``search``; None if none was given."""

    @functools.wraps(function)
    def with_search(*arguments: Any, **others: Any) -> Any:
        names = ("regress", "confidence", "min_effect", "probe", "find_all", "find_fix", "bridge_follows")
        given = {name: value for name in names if (value := others.pop(name)) is not None}
        if others.pop("no_prune"):
            given["fold"] = False
        if others.pop("no_revert"):
            given["revert"] = False
        if skip := others.pop("skip"):
            given["skip"] = tuple(skip)
        if fixups := others.pop("fixups"):
            given["fixups"] = tuple(map(Fixup.parse, fixups))
        if "regress" in given:
            given["regress"] = Regress(given["regress"])
        return function(*arguments, search=SearchOptions(**given) if given else None, **others)

    decorated: Callable[..., Any] = with_search
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
