"""What of the environment can change a run's numbers.

The tool asks before a run, to see whether it has one like it; the run asks itself, to prove it. Both ask the functions
here, so that the answers can be compared. Run as a script by an interpreter, it prints that interpreter's version and
path. Nothing is imported but the standard library, and nothing initialises CUDA.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

__all__ = ["EDITABLE", "image", "installed", "processor", "variables", "video"]

EDITABLE = "editable:"
"""Begins the version of a package whose code lies in a working folder and may change without a trace."""

_PACKAGES = re.compile(
    r"torch|numpy|scipy|transformers|tokenizers|triton|pytorch-triton|transformer-engine.*|apex|flash-attn.*|einops|"
    r"megatron-bridge|nvidia-(?!ml-py|resiliency-ext|nvtx|sphinx).*|mamba-ssm|causal-conv1d|"
    r"grouped-gemm|deep-ep|emerging-optimizers|mkl|intel-openmp|onednn|jax|xformers|bitsandbytes|liger-kernel|fla|"
    r"flash-linear-attention|tilelang|omegaconf|hydra-core"
)
_VARIABLES = re.compile(
    r"PYTHONHASHSEED|GOTO_NUM_THREADS|"
    r"(?:ATEN|CUBLAS|CUBLASLT|CUDNN|CUDA|DNNL|FLASH|KMP|MEGATRON|MCORE|MKL|NCCL|NVIDIA|NVSHMEM|NVTE|OMP|ONEDNN|OPENBLAS|"
    r"PYTORCH|TORCH|TORCHINDUCTOR|TRITON|UB)_\w+"
)
_WITHOUT_EFFECT = re.compile(
    r"CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|NVIDIA_DRIVER_CAPABILITIES|NVIDIA_REQUIRE_\w+|\w+_URL|"
    r"\w+_(?:DIR|HOME|PATH|ROOT|CACHE|FILE|LOGS?|LEVEL|DEBUG|SUBSYS|VERBOSE|TIMEOUT(?:_\w+)?)"
)
_IMAGES = ("CONTAINER_IMAGE", "SLURM_CONTAINER_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER",
           "ENROOT_ROOTFS", "NVIDIA_BUILD_ID", "NVIDIA_PYTORCH_VERSION", "NEMO_VERSION")  # fmt: skip
_PODMAN = Path("/run/.containerenv")
_PROC_DRIVER = Path("/proc/driver/nvidia")
_ASK_DRIVER = ("nvidia-smi", "--query-gpu=driver_version,name", "--format=csv,noheader")


def installed(path: Iterable[str]) -> dict[str, str]:
    """Versions of the packages that can change numbers, by name; the first one on the path counts, as for an import.

    They are read off the names of the metadata folders: that takes a few milliseconds, and no package is imported. An
    editable package has `EDITABLE` and its place for a version. Only folders that installers write to are looked at:
    what a run lists of a checkout would count as read by it.
    """
    found: dict[str, str] = {}
    for folder in path:
        if Path(folder).name not in ("site-packages", "dist-packages"):
            continue
        try:
            names = os.listdir(folder)  # noqa: PTH208
        except OSError:
            continue
        here: dict[str, str] = {}
        for name in names:
            stem, _, kind = name.rpartition(".")
            if kind == "egg-link":
                package, version = stem, EDITABLE
            elif kind in ("dist-info", "egg-info"):
                package, _, version = stem.partition("-")
            else:
                continue
            package = re.sub(r"[-_.]+", "-", package).lower()
            if _PACKAGES.fullmatch(package):
                here[package] = _place(Path(folder, name)) or version
        found = here | found
    return dict(sorted(found.items()))


def _place(metadata: Path) -> str | None:
    try:
        told = json.loads((metadata / "direct_url.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_editable = told.get("dir_info", {}).get("editable", False)
    return f"{EDITABLE}{told.get('url', '')}" if is_editable else None


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that can change numbers, with secrets masked; which devices are visible and where caches are can't."""
    from lossbisect.redact import redact_variables

    return redact_variables(
        {
            name: value
            for name, value in sorted(environment.items())
            if _VARIABLES.fullmatch(name) and not _WITHOUT_EFFECT.fullmatch(name)
        }
    )


@lru_cache(1)
def processor() -> str:
    """The CPU's model and a digest of its abilities: libraries choose their kernels by them."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return f"{platform.machine()} {platform.processor()}".strip()
    model = re.search(r"^model name\s*:\s*(.*)$", told, re.MULTILINE)
    abilities = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", told, re.MULTILINE)
    digest = hashlib.sha256(" ".join(sorted((abilities[1] if abilities else "").split())).encode()).hexdigest()[:8]
    return f"{platform.machine()} {model[1].strip() if model else ''} {digest}"


@lru_cache(1)
def video() -> tuple[str | None, str | None]:
    """Version of NVIDIA's driver, and the models of the GPUs; None where there are none.

    Where models differ, the visible devices are named too.
    """
    try:
        told = (_PROC_DRIVER / "version").read_text(encoding="utf-8", errors="replace")
        files = sorted((_PROC_DRIVER / "gpus").glob("*/information"))
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    except OSError:
        return _asked_video()
    version = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", told)
    models = [found[1].strip() for text in texts if (found := re.search(r"^Model:\s*(.*)$", text, re.MULTILINE))]
    return (version[1], _models(models)) if version and models else _asked_video()


def _asked_video() -> tuple[str | None, str | None]:
    try:
        done = subprocess.run(_ASK_DRIVER, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None, None
    rows = [line.split(", ", 1) for line in done.stdout.splitlines() if ", " in line]
    return (rows[0][0], _models([row[1].strip() for row in rows])) if done.returncode == 0 and rows else (None, None)


def _models(models: list[str]) -> str:
    kinds = sorted(set(models))
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    return kinds[0] if len(kinds) == 1 else f"{', '.join(kinds)} (visible: {seen})"


def image(environment: Mapping[str, str]) -> str | None:
    """The container's image, as far as anything there tells it; None outside of one, or where nothing does."""
    told = [f"{name}={environment[name]}" for name in _IMAGES if environment.get(name)]
    try:
        named = re.search(r'^image="(.*)"$', _PODMAN.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        told += [named[1]] if named else []
    except OSError:
        pass  # podman alone writes it
    return ", ".join(told) or None


if __name__ == "__main__":
    own = str(Path(__file__).parent)
    print(json.dumps({"python": platform.python_version(), "path": [part for part in sys.path if part != own]}))  # noqa: T201
