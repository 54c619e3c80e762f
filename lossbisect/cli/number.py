"""Numbers that a user gives."""

import math
from typing import Any

import click

__all__ = ["Number"]


class Number(click.FloatRange):
    """A number in a range; NaN, which no comparison refuses, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As `click.FloatRange`.

        Raises:
            click.BadParameter: It is none, or out of range.
        """
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number
