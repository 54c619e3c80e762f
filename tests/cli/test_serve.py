"""``lossbisect serve`` as a process."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.serve.made import make_run

PATIENCE_S = 60


def start(root: Path, *words: str) -> subprocess.Popen[str]:
    """The command, running."""
    environment = {**os.environ, "LOSSBISECT_CACHE_DIR": str(root), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "lossbisect", "serve", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_answers_there_and_ends_politely(tmp_path: Path, number: signal.Signals) -> None:
    """The first line is the address; Ctrl-C and a polite kill end it with 0 and without a word too many."""
    run = make_run(tmp_path)
    process = start(tmp_path, "--port", "0")
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:  # noqa: S310
            assert run in answer.read().decode()
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0
    assert said == f"Shows {tmp_path}. Ctrl-C ends it.\n"


def test_a_wider_address_is_warned_of(tmp_path: Path) -> None:
    """Whoever listens on every address is told that nobody is asked for a password."""
    process = start(tmp_path, "--host", "0.0.0.0", "--port", "0")  # noqa: S104
    try:
        assert process.stderr is not None
        assert "shown to everybody" in process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    """Exit code 2, what is wrong, and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start(tmp_path, "--port", str(port))
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert said.startswith(f"Error: 127.0.0.1:{port}: can't listen there")
    assert "Name another --port" in said
    assert said.count("\n") == 1


def test_a_host_that_is_none_is_one_line(tmp_path: Path) -> None:
    """A name that nobody knows."""
    process = start(tmp_path, "--host", "no.such.host.invalid")
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "can't listen there" in said
