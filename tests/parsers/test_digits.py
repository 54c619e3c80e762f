"""Numbers read from many texts at once are the ones that Python reads from each."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.parsers.digits import Shape, fits, read_decimal, read_digits, texts_at, width_of


@settings(deadline=None, max_examples=200)
@given(
    whole=st.integers(1, 9),
    decimals=st.integers(1, 6),
    has_exponent=st.booleans(),
    is_small=st.booleans(),
    lead=st.integers(0, 9),
    data=st.data(),
)
def test_decimals_are_rounded_as_python_rounds(
    whole: int, decimals: int, has_exponent: bool, is_small: bool, lead: int, data: st.DataObject
) -> None:
    """To the last bit, wherever in a word a number starts."""
    digits = st.text("0123456789", min_size=whole + decimals + 2, max_size=whole + decimals + 2)
    printed = []
    for text in data.draw(st.lists(digits, min_size=1, max_size=5)):
        number = f"{text[:whole]}.{text[whole : whole + decimals]}"
        printed.append(f"{number}E{'-' if is_small else '+'}{text[-2:]}" if has_exponent else number)
    size = lead + len(printed[0]) + 8
    block = "".join("x" * lead + number + "\n" + "y" * 7 for number in printed).encode() + bytes(16)
    import numpy as np

    texts = texts_at(block, np.arange(len(printed)) * size, -(-size // 8) * 8)
    sign = (-1 if is_small else 1) if has_exponent else 0
    found, is_read = read_decimal(texts, lead, lead + whole, lead + whole + 1 + decimals, sign)
    for value, is_there, number in zip(found.tolist(), is_read.tolist(), printed, strict=True):
        assert not is_there or value == float(number)
        assert is_there or has_exponent


def test_shape_fits_digits_only() -> None:
    """A place for a digit takes every digit and nothing else, another place its own byte only."""
    import numpy as np

    shape = Shape(b"loss: 12 |\n", frozenset({6, 7}))
    others = [bytes([byte]) for byte in range(256)]
    lines = [b"loss: 1" + other + b" |\n" for other in others] + [b"los" + other + b": 12 |\n" for other in others]
    block = b"".join(lines) + bytes(width_of(shape))
    texts = texts_at(block, np.arange(len(lines)) * len(shape.text), width_of(shape))
    good = [bytes([byte]) for byte in b"0123456789"]
    found = fits(texts, shape).tolist()
    assert [other for other, is_row in zip(others, found[:256], strict=True) if is_row] == good
    assert [other for other, is_row in zip(others, found[256:], strict=True) if is_row] == [b"s"]
    assert read_digits(texts[:, [0x30 + 7]], 6, 8).tolist() == [17]
