"""One command line for what makes and keeps the notebooks: `python -m course TOOL ...`, in notebooks/.

Each tool reads its arguments before it does anything, and `python -m course TOOL --help` writes nothing.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

# What a module's `main(arguments)` does, by the name that is typed.
TOOLS = {
    "store": ("course.tools.store", "run notebooks and store their outputs, or compare them"),
    "series": ("course.tools.series", "write the map of notebook 00"),
    "glossary": ("course.tools.glossary", "write docs/glossary.md"),
    "face": ("course.tools.face", "write the picture and the numbers of README.md"),
    "failures_page": ("course.tools.failures_page", "write failures.ipynb"),
    "puzzles": ("course.tools.puzzles", "write puzzles.ipynb"),
    "links": ("course.tools.links", "write the links to Colab and others, or take them away"),
    "my_notebooks": ("course.tools.my_notebooks", "bring a reader's own copies up to date"),
    "fetch": ("course.tools.fetch.command", "bring a public data set into a folder"),
    "capstone": ("course.lessons.nb34.command", "write a program with ten bugs, or judge a repaired one"),
    "training_film": ("course.kit.training_film", "train again what notebook 20 shows (minutes)"),
    "own_boxes_film": ("course.lessons.nb22.own_boxes_film", "train again what notebook 22 shows (minutes)"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one tool; its exit code."""
    width = max(map(len, TOOLS))
    listed = "\n".join(f"  {name:{width}}  {words}" for name, (_, words) in TOOLS.items())
    parser = argparse.ArgumentParser(
        prog="python -m course",
        description=f"Make and keep the notebooks. The tools are\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tool", choices=TOOLS, metavar="TOOL", help="one of these; `TOOL --help` says more of it")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the tool")
    chosen = parser.parse_args(arguments)
    module, _ = TOOLS[chosen.tool]
    return import_module(module).main(chosen.arguments) or 0


if __name__ == "__main__":
    sys.exit(main())
