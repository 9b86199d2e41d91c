"""The command line: `python -m multigpu lint | explain | doctor | serve`."""

import importlib
import sys
from collections.abc import Sequence

from multigpu import __version__

COMMANDS = {
    "lint": "find the lines of your code that go wrong on several GPUs",
    "explain": "print the cause and the fix of an error text or a traceback",
    "serve": "answer an agent through the Model Context Protocol, on standard input and output",
    "doctor": "check whether PyTorch works on this machine, and say how to mend what does not",
}
USAGE = """\
usage: python -m multigpu COMMAND ...

Find and explain what goes wrong when PyTorch runs on several GPUs.

commands:
{commands}

options:
  -h, --help  show this help message and exit
  --version   print the version and exit

python -m multigpu COMMAND --help shows what a command takes."""
BAD_INPUT = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command with the rest of the arguments and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else ""
    if name in COMMANDS:
        return importlib.import_module(f"multigpu.{name}").main(arguments[1:]) or 0
    if name == "--version":
        print(__version__)
        return 0
    asked = name in ("", "-h", "--help")
    if not asked:
        print(f"there is no command {name!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
    commands = "\n".join(f"  {name:12}{does}" for name, does in COMMANDS.items())
    print(USAGE.format(commands=commands), file=sys.stdout if asked else sys.stderr)
    return 0 if asked else BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
