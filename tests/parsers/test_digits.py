"""Numbers read from many texts at once are the ones that Python reads from each."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.parsers.digits import MOST_DIGITS, Shape, scaled, texts_at


@settings(deadline=None, max_examples=200)
@given(
    count=st.integers(1, MOST_DIGITS),
    n_decimals=st.integers(0, MOST_DIGITS),
    is_small=st.booleans(),
    lead=st.integers(0, 9),
    data=st.data(),
)
def test_decimals_are_rounded_as_python_rounds(
    count: int, n_decimals: int, is_small: bool, lead: int, data: st.DataObject
) -> None:
    """To the last bit, wherever in a word a number starts and however many digits it has."""
    import numpy as np

    n_decimals = min(n_decimals, count)
    digits = st.text("0123456789", min_size=count + 2, max_size=count + 2)
    drawn = data.draw(st.lists(digits, min_size=1, max_size=5))
    sign = "-" if is_small else "+"
    whole = count - n_decimals
    printed = [f"{text[:whole]}.{text[whole:count]}E{sign}{text[count:]}" for text in drawn]
    places = [lead + place + (place >= whole) for place in range(count)]
    exponent = [lead + count + 3, lead + count + 4]
    lines = [f"{'x' * lead}{number}\n".encode() for number in printed]
    shape = Shape(lines[0], frozenset(), [places, exponent])
    block = b"".join(lines) + bytes(shape.width)
    is_alike, (mantissas, exponents) = shape.read(texts_at(block, np.arange(len(lines)) * len(lines[0]), shape.width))
    assert is_alike.all()
    assert mantissas.tolist() == [int(text[:count]) for text in drawn]
    signed = (-1 if is_small else 1) * exponents.astype(np.int64) - n_decimals
    values, is_read = scaled(mantissas.astype(np.float64), signed)
    for value, is_there, number, power in zip(values.tolist(), is_read.tolist(), printed, signed.tolist(), strict=True):
        assert is_there == (abs(power) <= 22)
        assert not is_there or value == float(number)


def test_shape_fits_digits_only() -> None:
    """A place for a digit takes every digit and nothing else, another place its own byte only."""
    import numpy as np

    for digits, numbers in ((frozenset[int](), [[6, 7]]), (frozenset({6, 7}), [[7]])):
        shape = Shape(b"loss: 12 |\n", digits, numbers)
        others = [bytes([byte]) for byte in range(256)]
        lines = [b"loss: 1" + other + b" |\n" for other in others] + [b"los" + other + b": 12 |\n" for other in others]
        block = b"".join(lines) + bytes(shape.width)
        is_alike, (read,) = shape.read(texts_at(block, np.arange(len(lines)) * len(shape.text), shape.width))
        found = is_alike.tolist()
        good = [bytes([byte]) for byte in b"0123456789"]
        assert [other for other, is_row in zip(others, found[:256], strict=True) if is_row] == good
        assert [other for other, is_row in zip(others, found[256:], strict=True) if is_row] == [b"s"]
        assert read.tolist() == [10 * (len(numbers[0]) - 1) + digit for digit in range(10)] + [
            12 if len(numbers[0]) == 2 else 2
        ]
