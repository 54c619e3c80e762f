"""The table of what ends a run that doesn't end by itself: named kinds, and what is to blame for each.

It is the only such table: the parsers name a log's failure by it, and `lossbisect.train.failure` decides by it whether
a run of ours is tried again.
"""

from typing import NamedTuple

from lossbisect.cause import Cause

__all__ = ["FAILURE_KINDS", "Kind"]


class Kind(NamedTuple):
    """One way to fail.

    Attributes:
        name: Stable name.
        needles: Text of which every line of this kind has one; it keeps the search fast.
        pattern: What such a line says, as a regular expression; compiled by whoever meets a needle.
        cause: What is to blame for it.
        is_symptom: It is also what the other ranks say when one has failed: any other failure explains it.
    """

    name: str
    needles: tuple[str, ...]
    pattern: str
    cause: Cause
    is_symptom: bool


def _infrastructure(name: str, needles: tuple[str, ...], pattern: str, *, is_symptom: bool = False) -> Kind:
    return Kind(name, needles, pattern, Cause.INFRASTRUCTURE, is_symptom)


def _own(name: str, needles: tuple[str, ...], pattern: str) -> Kind:
    return Kind(name, needles, pattern, Cause.OWN, is_symptom=False)


def _unknown(name: str, needles: tuple[str, ...], pattern: str, *, is_symptom: bool = False) -> Kind:
    return Kind(name, needles, pattern, Cause.UNKNOWN, is_symptom)


_NCCL_ERRORS = tuple(f"nccl{name}Error" for name in ("System", "Internal", "Remote", "UnhandledCuda", "InvalidUsage"))

FAILURE_KINDS: tuple[Kind, ...] = (
    # What kills a machine or a job comes first: whatever else is printed follows from it.
    _infrastructure(
        "gpu-hardware",
        ("ECC error", "fallen off the bus", "unspecified launch failure", "NVLink error", "NVRM: Xid"),
        r"uncorrectable (?:NVLink )?ECC error|double[- ]bit ECC error|fallen off the bus|uncorrectable NVLink error"
        r"|NVRM: Xid",
    ),
    _infrastructure(
        "cuda-driver",
        (
            "driver version is insufficient",
            "no CUDA-capable device",
            "system not yet initialized",
            "NVIDIA driver on your system is too old",
            "Found no NVIDIA driver",
            "driver/library version mismatch",
            "CUDA unknown error",
        ),
        r"CUDA driver version is insufficient|no CUDA-capable device is detected|system not yet initialized"
        r"|NVIDIA driver on your system is too old|Found no NVIDIA driver|driver/library version mismatch"
        r"|CUDA unknown error",
    ),
    _infrastructure(
        "disk-full",
        ("No space left on device", "Disk quota exceeded", "file write failed"),
        r"No space left on device|Disk quota exceeded|PytorchStreamWriter failed writing file",
    ),
    _infrastructure(
        "file-system",
        ("Stale file handle", "Input/output error", "Transport endpoint is not connected", "Remote I/O error"),
        r"Stale file handle|\[Errno 5\]|failed with Input/output error|Transport endpoint is not connected"
        r"|Remote I/O error",
    ),
    _infrastructure(
        "node-failure",
        ("DUE TO NODE FAILURE", "DUE TO NODE_FAIL", "Node failure on ", "STEPD TERMINATED"),
        r"DUE TO NODE[ _]FAIL|Node failure on |STEPD TERMINATED ON",
    ),
    _infrastructure("preemption", ("DUE TO PREEMPTION",), r"DUE TO PREEMPTION"),
    _infrastructure(
        "shared-memory",
        ("insufficient shared memory", "out of shared memory", "unable to open shared memory object"),
        r"insufficient shared memory|out of shared memory|unable to open shared memory object",
    ),
    _own("cuda-oom", ("out of memory", "OutOfMemoryError:"), r"(?:CUDA|HIP|NPU) out of memory|OutOfMemoryError:"),
    _unknown("host-oom", ("oom-kill", "oom_kill"), r"oom[-_]kill"),
    _own(
        "nan",
        ("found NaN in local", "found Inf in local", "Unexpected result "),
        r"Unexpected result (?:nan|inf)\b|found (?:NaN|Inf) in local",
    ),
    _unknown("rerun-state-machine", ("Unexpected result ",), r"Unexpected result \S+ (?:on rank|\(message)"),
    _own("import-error", ("ModuleNotFoundError:", "ImportError:"), r"^\s*(?:ModuleNotFoundError|ImportError):"),
    _unknown("time-limit", ("TIME LIMIT",), r"DUE TO TIME LIMIT"),
    _own("cuda-error", ("CUDA error", "device-side assert"), r"CUDA error:|CUDA error \d|device-side assert"),
    _infrastructure(
        "port-in-use", ("EADDRINUSE", "ddress already in use"), r"EADDRINUSE|[Aa]ddress already in use", is_symptom=True
    ),
    _infrastructure(
        "rendezvous",
        (
            "RendezvousConnectionError",
            "RendezvousTimeoutError",
            "RendezvousClosedError",
            "DistNetworkError",
            "DistStoreError",
            "Connection refused",
            "connectFullMesh",
            "Connection closed by peer",
            "Connection reset by peer",
            "Broken pipe",
            "No route to host",
            "name resolution",
            "Socket Timeout",
            "Timed out waiting",
        ),
        r"Rendezvous(?:Connection|Timeout|Closed)Error|Dist(?:Network|Store)Error"
        r"|(?:connect|gloo|socket|store|ConnectionRefusedError)\b.*Connection refused(?!, retrying)"
        r"|Gloo connectFullMesh failed|Socket Timeout"
        r"|(?:Connection (?:closed|reset) by peer|Broken pipe|No route to host)"
        r"|(?:Temporary failure in name resolution|Name or service not known)|gloo/.*Timed out waiting",
        is_symptom=True,
    ),
    _infrastructure(
        "nccl",
        ("NCCL error", "NCCL Error", *_NCCL_ERRORS, "DistBackendError", "Watchdog caught collective operation"),
        rf"NCCL [Ee]rror|{'|'.join(_NCCL_ERRORS)}|DistBackendError|Watchdog caught collective operation timeout",
        is_symptom=True,
    ),
    _unknown(
        "signal",
        (
            "SIG",
            " death signal",
            "Segmentation fault",
            "Bus error",
            ": Killed",
            ": Terminated",
            "exitcode",
            "CANCELLED",
        ),
        r"Segmentation fault|Bus error|Received (?:SIG[A-Z]+|\d+) death signal|Signal \d+ \(SIG[A-Z]+\)"
        r"|received SIG[A-Z]+|exitcode\s*: -\d+|task \d+: (?:Killed|Terminated)|CANCELLED AT",
        is_symptom=True,
    ),
)
"""Kinds with a name of their own, the likelier cause first; a ``traceback`` that is none of them comes last."""
