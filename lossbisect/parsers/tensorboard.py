"""TensorBoard's event files, one or a folder of them, read with TensorBoard's own reader."""

from collections.abc import Sequence
from pathlib import Path

from lossbisect.errors import ParseError
from lossbisect.parsers.files import EVENT_FILE_MARK
from lossbisect.parsers.pointwise import Points
from lossbisect.parsers.runlog import RunLog

__all__ = ["event_files", "read_event_files"]

_STRING = 7  # tensorboard's DT_STRING
_SINGLE = 2.0**-24  # values are stored in single precision


def event_files(folder: Path) -> list[Path]:
    """The event files of a folder, the oldest first: their names hold the time of their start."""
    return sorted(
        (path for path in folder.rglob(f"*{EVENT_FILE_MARK}*") if path.is_file()), key=lambda path: (path.name, path)
    )


def read_event_files(files: Sequence[Path], path: Path) -> RunLog:
    """The run of event files, the oldest first; where a resumed run wrote an iteration again, the later one wins.

    Raises:
        ParseError: TensorBoard isn't installed, or a file holds no value.
    """
    try:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
        from tensorboard.util import tensor_util
    except ModuleNotFoundError:
        raise ParseError(f"{path}: event files need 'pip install lossbisect[tensorboard]'.") from None
    points = Points(path, "tensorboard", "it is made of event files")
    for file in files:
        try:
            for event in EventFileLoader(str(file)).Load():
                for value in event.summary.value:
                    if value.HasField("tensor") and value.tensor.dtype != _STRING:
                        array = tensor_util.make_ndarray(value.tensor)
                        if array.size == 1:
                            points.add(value.tag, event.step, float(array.item()))
        except Exception as error:  # whatever a damaged record makes the reader raise
            text = str(error).partition("\n")[0] or type(error).__name__
            points.note(None, "cut-file", f"{file.name} can't be read to its end: {text}.")
    return points.log(loss_quantum_rel=_SINGLE)
