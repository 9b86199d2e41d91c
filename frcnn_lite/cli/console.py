"""What every command says, and the exit codes a shell reads."""

import sys

BAD_INPUT, INTERRUPTED = 2, 130  # argparse's own, and 128 + SIGINT as shells have it


def say(line: str) -> None:
    """One line about the work, on standard error: standard output holds results alone."""
    print(line, file=sys.stderr)
