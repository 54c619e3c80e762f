"""Warm parents, from the tool's side: start-up paid once for all runs of an interpreter.

Importing torch, transformers and what else comes from the environment is most of a short run's time, and it's the
same for every commit. A warm parent imports it once and forks each run. The first run of an environment is cold: it
remembers what to import.
"""

import itertools
import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lossbisect.train.trainers import Start

__all__ = ["WarmParent", "WarmParents"]

_CLOSE_S = 5.0


class WarmParent:
    """One process that has imported everything but the checkout's code, and forks runs.

    It serves several runs at once; `start` and `wait` may be called from several threads.
    """

    def __init__(self, command: list[str], env: Mapping[str, str], log: Path) -> None:
        """Start the parent; requests are queued while it imports.

        Args:
            command: ``launch.py --warm`` with its interpreter and options.
            env: Variables on top of the caller's, the same for all runs.
            log: File for what it prints.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, env={**os.environ, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                start_new_session=True,
            )  # fmt: skip
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Mapping[str, Any] | None]] = {}
        self._lock = threading.Lock()
        self._is_ready = False
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def is_alive(self) -> bool:
        """It can still fork runs."""
        return self._process.poll() is None

    @property
    def asked(self) -> int:
        """Runs that were asked of it so far."""
        return len(self._answers)

    def start(self, argv: list[str], *, env: Mapping[str, str], cwd: Path, console: Path) -> int:
        """Ask for a run that writes its output into the FIFO ``console``; returns the request's number."""
        with self._lock:
            number = next(self._ids)
            self._answers[number] = queue.SimpleQueue()
        request = {"id": number, "argv": argv, "env": dict(env), "cwd": str(cwd), "console": str(console)}
        if not self._ask(request):
            self._answers[number].put(None)
        return number

    def drop(self, number: int) -> None:
        """Take a request back, whether or not the run was forked in the meantime."""
        self._ask({"drop": number})

    def group(self, number: int, timeout_s: float) -> int | None:
        """The process group of the run, once it is forked; None if the parent has died.

        Raises:
            TimeoutError: It isn't yet.
        """
        answer = self._answer(number, timeout_s)
        return None if answer is None else answer["pid"]

    def wait(self, number: int, timeout_s: float) -> int | None:
        """The exit code of a run that was forked, negative for a signal; None if the parent has died.

        Raises:
            TimeoutError: It is still running.
        """
        answer = self._answer(number, timeout_s)
        return None if answer is None else answer["exit"]

    def close(self) -> None:
        """End the parent, and with it every run that is left."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        if not self._is_ready:
            self._process.kill()  # it imports, has no run, and wouldn't notice for seconds
        try:
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(_CLOSE_S)

    def _ask(self, request: Mapping[str, Any]) -> bool:
        """Send a request; False if the parent has died."""
        assert self._process.stdin is not None
        try:
            with self._lock:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
        except OSError:
            return False
        return True

    def _answer(self, number: int, timeout_s: float) -> Mapping[str, Any] | None:
        try:
            return self._answers[number].get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError from None

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                answer = json.loads(line)
                self._is_ready = True
                if "id" in answer:
                    self._answers[answer["id"]].put(answer)
        with self._lock:
            for waiting in self._answers.values():
                waiting.put(None)


class WarmParents:
    """The warm parents of one piece of work, made when first needed."""

    def __init__(self) -> None:
        """None yet."""
        self._parents: dict[tuple[str, ...], WarmParent] = {}
        self._lock = threading.Lock()

    def of(self, how: Start) -> WarmParent | None:
        """The parent for runs of a kind, which is started if need be; None if they have to start by themselves."""
        if how.preload is None:
            return None
        with self._lock:
            parent = self._parents.get(how.launcher)
            if parent is None and how.preload.is_file():
                parent = WarmParent([*how.launcher, "--warm"], how.set_up, how.preload.with_suffix(".log"))
                self._parents[how.launcher] = parent
            return parent if parent is not None and parent.is_alive else None

    @property
    def forked(self) -> int:
        """Runs that were asked of a warm parent so far."""
        return sum(parent.asked for parent in self._parents.values())

    def close(self) -> None:
        """End them all."""
        for parent in self._parents.values():
            parent.close()
