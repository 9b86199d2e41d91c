"""From a file of this folder to a command of the parser."""

import argparse
import importlib
from typing import Any


def declare(commands: Any, name: str, purpose: str, file: str | None) -> None:
    """Add one command.

    Args:
        commands: what `add_subparsers` returned.
        name: the word the user types.
        purpose: one line for the list of commands.
        file: the module of this package that has docstring, `add_options(parser)` and `run(options)`; None adds the
            line of the list alone and imports nothing.
    """
    parser = commands.add_parser(name, help=purpose, formatter_class=argparse.RawDescriptionHelpFormatter)
    if file is not None:
        command = importlib.import_module(f"{__package__}.{file}")
        parser.description = command.__doc__
        parser.set_defaults(run_command=getattr(command, "run", None), parser=parser)
        command.add_options(parser)
