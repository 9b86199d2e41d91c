"""`python -m vgpu --gpus N script.py args...`: run a program on virtual GPUs. Also `-m module`, `-c text` and `-`.

`python -m vgpu autostart --install` makes `VGPUS=N python script.py` work, too: see autostart.py.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import types
from pathlib import Path

import torch  # noqa: F401  first: startup.py may wait for it, and must find none of these files half imported

from vgpu import __version__, switch
from vgpu.machine import profiles, rng
from vgpu.racing import watch
from vgpu.starting import autostart, banner, choices, inherit

GPUS = "how many the program finds, as cuda:0 to cuda:N-1 (default: VGPUS, else 2)"
MEMORY = "of each, as in 64MiB (default: VGPUS_MEMORY, else the profile's, else a share of this machine's)"
PROFILE = f"which GPU they are: {', '.join(profiles.PROFILES)} (default: VGPUS_PROFILE, else none of these)"
RANDOM = f"whose random numbers they draw: {' or '.join(rng.STREAMS)} (default: VGPUS_RANDOM, else {rng.STREAMS[0]})"
TRITON = "interpret: Triton's interpreter runs its kernels on the CPU (default: VGPUS_TRITON, else they are refused)"
ERRORS = "when an index out of range fails: early, at its line, or late, as on GPUs (default: VGPUS_ERRORS, else late)"
RACES = "end with an error where two streams use the same memory and nothing orders them (default: VGPUS_RACES=1)"
DELAY = "let streams be as late as they may be, so that a race gives wrong numbers (default: VGPUS_RACES=delay)"


def main(argv: list[str] | None = None) -> None:
    """Run the program named by the command line as `__main__`, with virtual GPUs on."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["autostart"]:
        sys.exit(autostart.main(arguments[1:]))
    parser = argparse.ArgumentParser(
        prog="python -m vgpu",
        description="Run a program on virtual GPUs.",
        epilog="python -m vgpu autostart --help: how to let VGPUS=N python script.py do the same",
        allow_abbrev=False,
    )
    parser.add_argument("--gpus", type=int, metavar="N", help=GPUS)
    parser.add_argument("--memory", help=MEMORY)
    parser.add_argument("--profile", metavar="GPU", help=PROFILE)
    parser.add_argument("--errors", metavar="WHEN", help=ERRORS)
    parser.add_argument("--random", metavar="WHOSE", help=RANDOM)
    parser.add_argument("--triton", metavar="HOW", help=TRITON)
    streams = parser.add_mutually_exclusive_group()
    streams.add_argument("--races", dest="races", action="store_const", const=watch.RAISE, help=RACES)
    streams.add_argument("--delay", dest="races", action="store_const", const=watch.DELAY, help=DELAY)
    parser.add_argument("--force", action="store_true", help="accepted, and without effect")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("-m", dest="module", action="store_true", help="the program is a module, not a file")
    form.add_argument("-c", dest="text", action="store_true", help="the program is the text itself, not a file")
    parser.add_argument("--version", action="version", version=f"vgpu {__version__}", help="show the version")
    parser.add_argument("program", help="script.py, a module after -m, a text after -c, or - for standard input")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="arguments of the program")
    options = parser.parse_args(arguments)
    path = Path(options.program)
    is_stdin = options.program == "-" and not (options.module or options.text)
    if not (options.module or options.text or is_stdin or path.is_file()):
        parser.exit(2, f"{parser.prog}: error: no such file: {options.program}\n")
    try:
        asked = options.gpus is not None or os.environ.get(inherit.GPUS)
        switch.enable(options.gpus if asked else 2, **choices.of_each(vars(options)))
        if options.races:
            os.environ[watch.VARIABLE] = options.races
        watch.begin_if_told()
    except (ValueError, RuntimeError) as error:
        parser.error(str(error))
    print(f"vgpu: {banner.machine()}", file=sys.stderr)
    sys.argv = ["-c" if options.text else options.program, *options.args]
    if is_stdin or options.text:
        _run_text(sys.stdin.read() if is_stdin else options.program)
    elif options.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(path.resolve().parent)
        runpy.run_path(str(path), run_name="__main__")


def _run_text(text: str) -> None:
    """Run a text as `python -c` does: `__main__` has no file, so processes that it spawns do not look for one."""
    main_module = types.ModuleType("__main__")
    sys.modules["__main__"] = main_module
    exec(compile(text, "<string>", "exec"), vars(main_module))


if __name__ == "__main__":
    main()
