"""The command line: `python -m multigpu lint | explain | doctor`."""

import importlib
import sys
from collections.abc import Sequence

from multigpu import __version__

COMMANDS = {
    "lint": "find in your code what goes wrong on several GPUs",
    "explain": "from an error text, or a traceback, to its cause and its fix",
    "doctor": "check this machine: Python, torch, devices, ports, and say how to fix what is wrong",
}
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
        print(f"there is no command {name!r}", file=sys.stderr)
    lines = ["usage: python -m multigpu COMMAND ...", "", *(f"  {name:10}{does}" for name, does in COMMANDS.items())]
    print("\n".join([*lines, "", "COMMAND --help says more."]), file=sys.stdout if asked else sys.stderr)
    return 0 if asked else BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
