"""A warm parent: imports once what every run imports, then forks a run for each request.

Requests come as JSON lines on standard input, answers go as JSON lines to standard output:

    -> {"id": 1, "argv": [...], "env": {...}, "cwd": "...", "console": "..."}
    <- {"id": 1, "pid": 4711}            the run is a process group of its own
    <- {"id": 1, "exit": 0}              negative: killed by that signal
    -> {"drop": 1}                       nobody waits for it any more

A closed standard input means that the tool is gone: the runs are killed, and the parent ends. There are no threads
here, since a fork copies only the one that forks.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from lossbisect.train.inside.byte_code import make_room
from lossbisect.train.inside.import_tables import remember_import_tables
from lossbisect.train.inside.installed import remembered
from lossbisect.train.inside.preload import Preload
from lossbisect.train.inside.sources import look_up_quickly
from lossbisect.train.inside.stage import Run, perform

__all__ = ["serve"]

_POLL_S = 0.005


def serve(lane: str, cache: Path, preloaded: Path) -> NoReturn:
    """Preload, say that we are ready, and fork a run for each request until standard input is closed; never returns."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a preloaded module prints must not look like an answer
    make_room(cache)
    preload = Preload(preloaded)
    remember_import_tables(cache)
    with remembered(cache):
        answers.write(json.dumps({"ready": _load(preload)}) + "\n")
    running: dict[int, int] = {}
    pending = b""
    while True:
        _answer_ended(running, answers)
        if not select.select([0], [], [], _POLL_S if running else None)[0]:
            continue
        read = os.read(0, 65536)
        if not read:
            break
        *lines, pending = (pending + read).split(b"\n")
        if lines and preload.is_behind():
            _load(preload)
        requests = [json.loads(line) for line in lines]
        dropped = {request["drop"] for request in requests if "drop" in request}
        for pid in (pid for pid, number in running.items() if number in dropped):
            _kill(pid)
        for request in requests:
            if "drop" in request or request["id"] in dropped:
                continue
            pid = os.fork()
            if pid == 0:
                answers.close()
                _be_the_run(lane, cache, preloaded, request)
            running[pid] = request["id"]
            answers.write(json.dumps({"id": request["id"], "pid": pid}) + "\n")
    for pid in running:
        _kill(pid)
    os._exit(0)  # to take thousands of modules apart in good order would take a second, and the tool waits


def _load(preload: Preload) -> int:
    """Import what is new on the list; returns how many modules that were."""
    gc.disable()
    loaded = preload.load()
    _use_yaml_in_c()
    look_up_quickly()
    gc.freeze()  # no run looks through, and so copies, what the parent holds
    gc.enable()
    return loaded


def _use_yaml_in_c() -> None:
    """Read YAML with libyaml, where PyYAML has it: a library of Bridge reads two hundred files at each start."""
    yaml = sys.modules.get("yaml")
    if hasattr(yaml, "CSafeLoader"):
        yaml.SafeLoader = yaml.CSafeLoader  # type: ignore[union-attr]


def _answer_ended(running: dict[int, int], answers: Any) -> None:
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            answers.write(json.dumps({"id": running.pop(pid), "exit": code}) + "\n")


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _be_the_run(lane: str, cache: Path, preloaded: Path, request: dict[str, Any]) -> None:
    """In the forked child: take the request's place in the world, run, and leave without returning."""
    code = 1
    try:
        os.setsid()
        _take_place(request)
        perform(_run_of(lane, cache, request["argv"]), preloaded)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)  # noqa: T201  # as the interpreter does
    except BaseException:  # as the interpreter does
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()  # noqa: SLF001  # os._exit leaves them out, a run of its own wouldn't
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _take_place(request: dict[str, Any]) -> None:
    console = os.open(request["console"], os.O_WRONLY)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (console, 1), (console, 2)):
        os.dup2(source, target)
    sys.stdout.reconfigure(line_buffering=True, write_through=True)  # type: ignore[union-attr]
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    paths = [path for path in request["env"].get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = paths
    importlib.invalidate_caches()


def _run_of(lane: str, cache: Path, argv: list[str]) -> Run:
    """The run that `launch.py` would have read from the same words."""
    out, *rest = argv
    is_module = rest[0] == "-m"
    target, *arguments = rest[is_module:]
    return Run(lane=lane, cache=cache, out=Path(out), target=target, arguments=tuple(arguments), is_module=is_module)
