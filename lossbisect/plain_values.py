"""Values of JSON, with the kind that they should have. Each raises TypeError for another kind."""

__all__ = ["mapping_of", "number_of", "sequence_of", "string_or_none"]


def mapping_of(value: object) -> dict[str, object]:
    """An object."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, not {value!r}")
    return value


def sequence_of(value: object) -> list[object]:
    """A list."""
    if not isinstance(value, list):
        raise TypeError(f"expected a list, not {value!r}")
    return value


def number_of(value: object) -> float:
    """A number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, not {value!r}")
    return float(value)


def string_or_none(value: object) -> str | None:
    """A text, or none."""
    return None if value is None else str(value)
