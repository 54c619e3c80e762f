"""A real Slurm of one node on this machine, in a folder of its own: munged, slurmctld and slurmd on loopback.

    python tests/slurm/cluster.py FOLDER        start it, print SLURM_CONF, and run until Ctrl-C

It needs root and Debian's ``slurm-wlm`` and ``munge``. There is no accounting: ``sacct`` says nothing, as on many
clusters.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from lossbisect.train.last_will import LastWill

__all__ = ["Cluster", "running", "why_not"]

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "scancel")
_SETTINGS = """\
ClusterName=lossbisect
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout={node_timeout_s}
KillWait=2
MinJobAge=60
MailProg=/bin/true
SchedulerParameters=sched_min_interval=1000,batch_sched_delay=0,bf_interval=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def why_not() -> str | None:
    """Why no cluster can be started here, in one sentence; None if one can."""
    if sys.platform != "linux":
        return "Slurm is started on Linux only"
    if os.geteuid() != 0:
        return "starting Slurm needs root"
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_path()) is None]
    return f"not installed: {', '.join(missing)} (Debian: slurm-wlm and munge)" if missing else None


class Cluster:
    """The daemons of one node.

    Attributes:
        folder: Where all their files are.
        variables: Environment with which Slurm's commands find this cluster.
    """

    def __init__(self, folder: Path, *, cpus: int = 4, node_timeout_s: int = 5) -> None:
        """Write the configuration; `start` starts the daemons.

        Args:
            folder: A new folder, readable by everybody.
            cpus: How many the node says it has; jobs of that many run at once.
            node_timeout_s: How long slurmd may be silent before its node is down.
        """
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "slurm.conf").write_text(
            _SETTINGS.format(
                host=_host(), folder=folder, controller_port=_free_port(), node_port=_free_port(), cpus=cpus,
                node_timeout_s=node_timeout_s,
            )
        )  # fmt: skip
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        self.variables = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": _path()}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._will, self._held = LastWill(), ExitStack()

    def start(self) -> None:
        """Start all daemons, and wait until the node is idle."""
        files = {name: f"{self.folder}/munge.{name}" for name in ("socket", "pid", "log", "seed")}
        self._start(
            "munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key", f"--socket={files['socket']}",
            f"--pid-file={files['pid']}", f"--log-file={files['log']}", f"--seed-file={files['seed']}",
        )  # fmt: skip
        self._until(lambda: Path(files["socket"]).exists(), "munged")
        self._start("slurmctld", "-D", "-i", "-f", self.variables["SLURM_CONF"])
        self.start_node()

    def start_node(self) -> None:
        """Start slurmd if it doesn't run, and wait until its node can take a job."""
        if "slurmd" not in self._daemons or self._daemons["slurmd"].poll() is not None:
            self._start("slurmd", "-D", "-f", self.variables["SLURM_CONF"], "-N", _host())
        self._until(lambda: self.node_state().rstrip("*") in ("idle", "mix", "alloc"), "slurmd")

    def kill_node(self) -> None:
        """``kill -9`` of slurmd, its step daemons and all processes of its jobs, as if the node had lost its power."""
        self._kill("slurmd")
        doomed = self._processes_on_the_node()
        for number in (signal.SIGSTOP, signal.SIGKILL):  # nobody sees another one die
            for pid in doomed:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def _processes_on_the_node(self) -> list[int]:
        mine, found = f"SLURM_CONF={self.variables['SLURM_CONF']}".encode(), []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes()
                variables = (entry / "environ").read_bytes().split(b"\0")
                is_job = any(variable.startswith(b"SLURM_JOB_ID=") for variable in variables)
                if mine in variables and (is_job or words.startswith(b"slurmstepd:")):
                    found.append(int(entry.name))
        return found

    def give_up_node(self) -> None:
        """What the controller does by itself once it has missed a dead slurmd for long enough."""
        self.ask("scontrol", "update", f"nodename={_host()}", "state=down", "reason=lost")

    def kill_slurmd(self) -> None:
        """``kill -9`` of slurmd alone; its jobs go on."""
        self._kill("slurmd")

    def node_state(self) -> str:
        """What sinfo says of the node, such as ``idle`` or ``down*``; empty if it can't be asked."""
        return self.ask("sinfo", "--noheader", "--format=%t").strip()

    def ask(self, *command: str) -> str:
        """The output of one of Slurm's commands."""
        done = subprocess.run(
            command, env={**os.environ, **self.variables}, capture_output=True, text=True, check=False, timeout=60
        )
        return done.stdout

    def stop(self) -> None:
        """End the jobs, and then the daemons."""
        self.ask("scancel", "--user=root")
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self._daemons:
                self._daemons[name].terminate()
                try:
                    self._daemons[name].wait(10)
                except subprocess.TimeoutExpired:
                    self._kill(name)
        self._held.close()
        self._will.close()

    def _start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                [name, *arguments], env={**os.environ, **self.variables}, stdout=output, stderr=output,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        # Tests that are killed leave no daemon behind.
        self._held.enter_context(self._will.holding(f"kill -KILL {self._daemons[name].pid}"))

    def _kill(self, name: str) -> None:
        self._daemons[name].kill()
        self._daemons[name].wait()

    def _until(self, is_so: Callable[[], bool], name: str, timeout_s: float = 30.0) -> None:
        until_s = time.monotonic() + timeout_s
        while not is_so():
            if self._daemons[name].poll() is not None or time.monotonic() > until_s:
                texts = [path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob(f"{name}*.*"))
                         if path.suffix in (".out", ".log")]  # fmt: skip
                raise RuntimeError(f"{name} doesn't run:\n" + "\n".join(texts))
            time.sleep(0.1)


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster that runs as long as the block."""
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _path() -> str:
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    with running(Path(sys.argv[1]).absolute()) as started:
        print(f"SLURM_CONF={started.variables['SLURM_CONF']}", flush=True)  # noqa: T201
        with suppress(KeyboardInterrupt):
            signal.pause()
