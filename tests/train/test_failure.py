"""Which line of a console says why a run ended."""

from lossbisect.train.failure import last_error

TRACEBACK = "Traceback (most recent call last):\n"


def test_the_last_error_counts() -> None:
    """Of two tracebacks the later one ended the run."""
    console = (
        f"{TRACEBACK}  File x\nImportError: optional\nlater\n{TRACEBACK}  File y\nmegatron.core.E.SomeError: why\n"
    )
    assert last_error(console) == "megatron.core.E.SomeError: why"


def test_a_rank_is_named_rather_than_its_launcher() -> None:
    """Of several ranks the failing rank speaks, without its prefix, not its launcher."""
    console = (
        f"[rank1]: {TRACEBACK}[rank1]:   File x\n[rank1]: AssertionError: sequence parallel not supported\n"
        f"{TRACEBACK}  File run.py\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    )
    assert last_error(console) == "AssertionError: sequence parallel not supported"


def test_a_line_that_only_mentions_an_error_is_none() -> None:
    """Text outside a traceback is no reason, however it looks, and an empty console has none."""
    assert last_error("ValueError: printed by somebody\niteration 1\n") is None
    assert last_error("") is None


def test_a_long_message_is_cut() -> None:
    """A reason stays one line of at most 300 characters."""
    reason = last_error(f"{TRACEBACK}KeyError: {'x' * 1000}\n")
    assert reason is not None
    assert len(reason) == 300
