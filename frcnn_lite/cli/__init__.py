"""The command line: `python -m frcnn_lite COMMAND`.

A command is one file of this folder and one line of `COMMANDS`. The first line of its docstring is what the list of
commands shows, all of it what its `--help` shows; its `add_options(parser)` declares the options and its `run(options)`
returns the exit code. Nothing here imports torch before a command runs, so that `--help` is quick. Results go to
standard output, everything said about them to standard error.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from frcnn_lite import __version__

from . import copy, data_check, data_sheet, evaluate, export, predict, train
from .console import BAD_INPUT, INTERRUPTED, plain_warnings, say

COMMANDS = {"train": train, "evaluate": evaluate, "predict": predict, "export": export, "copy": copy}
LOOKS_AT_DATA = {"check": data_check, "sheet": data_sheet}  # `data check`


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0; 1: part of it failed; 2: bad input; 130: interrupted by Ctrl-C; 143: ended by SIGTERM.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = _parser(arguments).parse_args(arguments)
    if options.run_command is None:
        options.parser.print_help(sys.stderr)
        say(f"{options.parser.prog}: name one of these")
        return BAD_INPUT
    # Idle OpenMP threads spin by default, and where the cores are shared with other programs a parallel loop then waits
    # behind its own spinning: 8 times the time per training step, measured on two busy cores. The variable is read
    # once, when torch is loaded, and no line above has done that.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        with plain_warnings():
            return options.run_command(options)
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except (ValueError, OSError, FloatingPointError, ModuleNotFoundError) as error:
        if options.traceback:
            raise
        say(f"error: {error}", on_every_rank=True)
        return BAD_INPUT


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the options of those commands alone that are named in `arguments`."""
    parser = argparse.ArgumentParser(
        prog="python -m frcnn_lite", description="Train and use a small Faster R-CNN on several GPUs."
    )
    parser.add_argument("--version", action="version", version=f"frcnn_lite {__version__}", help="show the version")
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error arose")
    parser.set_defaults(run_command=None, parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add(commands, COMMANDS, arguments)
    data = commands.add_parser(
        "data", help="Check pictures of your own before you train on them", description="Look at data before training."
    )
    data.set_defaults(parser=data)
    _add(data.add_subparsers(title="what to do", metavar="WHAT"), LOOKS_AT_DATA, arguments)
    return parser


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    modules: Mapping[str, ModuleType],
    arguments: Sequence[str],
) -> None:
    for name, module in modules.items():
        said = module.__doc__ or ""
        parser = commands.add_parser(
            name,
            help=said.splitlines()[0].removesuffix("."),
            description=said,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.set_defaults(run_command=module.run, parser=parser)
        if name in arguments:
            module.add_options(parser)
