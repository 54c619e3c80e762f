"""Run a trainer's script or module, with lossbisect's recorder and, on the CPU lane, emulated CUDA around it.

    python launch.py --lane cpu --out DIR --cache DIR SCRIPT.py ARGS...
    python launch.py --lane cpu --out DIR --cache DIR -m MODULE ARGS...

It is run by path, by an interpreter that need not have lossbisect installed. The package is therefore loaded from this
file's place under its own name, and nothing is put on ``sys.path``: the trainer must not see the tool's neighbours.
"""

import sys


def _load_lossbisect() -> None:
    import importlib.util
    from pathlib import Path

    here = Path(__file__).resolve()
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == here.parent:
        del sys.path[0]
    root = here.parents[2]
    spec = importlib.util.spec_from_file_location(
        "lossbisect", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["lossbisect"] = package
    spec.loader.exec_module(package)


def _stay_around_after_exec(target: str, ours: list[str]) -> None:
    """A trainer that starts itself anew (Bridge does, to set its environment) is started inside the launcher again."""
    import os

    execvpe = os.execvpe

    def execvpe_inside(file: str, args: list[str], env: dict[str, str]) -> None:
        is_trainer = file == sys.executable and args[1:2] == [target]
        execvpe(file, [args[0], __file__, *ours, *args[1:]] if is_trainer else args, env)

    os.execvpe = execvpe_inside  # type: ignore[assignment]


def main() -> None:
    """Parse the few options of ours, set the stage, and hand over to the trainer as ``__main__``."""
    _load_lossbisect()

    import argparse
    import os
    import runpy
    from functools import partial
    from pathlib import Path

    parser = argparse.ArgumentParser(prog="launch.py", allow_abbrev=False)
    parser.add_argument("--lane", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("-m", dest="is_module", action="store_true")
    parser.add_argument("target")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()

    from lossbisect.train.inside import provenance, recorder
    from lossbisect.train.inside.post_import import after_import

    if options.lane == "cpu":
        from lossbisect.train.cpu_lane import activate

        activate(options.cache)
    ours = ["--lane", options.lane, "--out", str(options.out), "--cache", str(options.cache)]
    _stay_around_after_exec(options.target, ours)
    if options.lane == "cpu":  # Bridge's variables concern CUDA and NCCL; a second start would only cost time
        os.environ["_MB_TRAINING_RECIPE_ENV_BOOTSTRAPPED"] = str(os.getpid())
    recorder.install(options.out / "scalars.ndjson")
    after_import("megatron.core", partial(provenance.announce, lane=options.lane))

    sys.argv = [options.target, *options.arguments]
    if options.is_module:
        runpy.run_module(options.target, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(options.target).resolve().parent))
        runpy.run_path(options.target, run_name="__main__")


if __name__ == "__main__":
    main()
