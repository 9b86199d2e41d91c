"""Write docs/verdicts.md from the verdict tests: `python notebooks/posts/verdicts/table.py`."""

import argparse
import importlib
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path

from verdict import RULINGS, Verdict

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "verdicts.md"
POSTS = {
    "000": (
        "Faster R-CNN on several GPUs",
        "guide without a date; its Python 2 and Variables point to torch 0.1 or 0.2, about 2017",
    ),
    "001": (
        "RoI pooling with CuPy, in simple-faster-rcnn-pytorch",
        "notes without a date on code of 2017 and 2018, torch 0.3 or 0.4",
    ),
    "002": (
        "grouped convolution, and einsum in place of FC layers",
        "blog post without a date; its listings point to torch 1.0 or 1.1, about 2019",
    ),
    "003": (
        "DataParallel: the dimension of the output is different from the input",
        "blog post, 15 December 2021, torch 1.5.0+cu101",
    ),
    "004": (
        "an engineer's notes on PyTorch: export, learning rates, determinism, in-place errors, foreign weights",
        "notes kept from March 2021 on, torch 1.1 to 1.7",
    ),
}
HEADER = """\
# The posts, judged line by line

Every entry is a ruling, and the claim of a post that it is about; the series is built on these posts. Every ruling has
a test, and the test runs the claim wherever this project can. A rule of an old PyTorch is acted out from its source or
its issue, which the entry names. What needs CuPy, TensorRT or a GPU is *not tried*, and the entry says what was looked
at in its place. The page is written by `python notebooks/posts/verdicts/table.py`, and a test fails when the page and
the proofs disagree.

A ruling judges a claim in the post's own situation first, its versions and its numbers of GPUs, and then says what
changes outside of it.
"""


def verdicts() -> list[Verdict]:
    """The marks on the tests of the files beside this one, in their order.

    Read from the tests and not from a list that `verdict` fills: pytest imports the same files under names of its own,
    and each mark would stand in such a list twice.
    """
    modules = [importlib.import_module(path.stem) for path in sorted(HERE.glob("test_post_*.py"))]
    return [test.verdict for module in modules for test in vars(module).values() if hasattr(test, "verdict")]


def page() -> str:
    """The whole of docs/verdicts.md."""
    sections = [HEADER, _counts()]
    for post, rows in groupby(verdicts(), key=lambda row: row.post):
        title, source = POSTS[post]
        sections.append(f"## Post {post}: {title}\n\nSource: {source}.\n")
        sections.extend(_entry(row) for row in rows)
    return "\n".join(sections)


def _entry(row: Verdict) -> str:
    """An entry of a list, because a table of six columns cannot be read on a narrow screen."""
    shown = f"Proved by `{row.proof}`."
    if row.notebook:
        shown = f"Shown in [{row.notebook}](../notebooks/{row.notebook}.ipynb), proved by `{row.proof}`."
    return f"- **{row.ruling}**: {row.claim}\n\n  In the post: {row.place}.\n\n  {row.because} {shown}\n"


def _counts() -> str:
    """What each ruling means, and how often it was given on each post."""
    given = Counter((row.ruling, row.post) for row in verdicts())
    lines = [f"| ruling | meaning | {' | '.join(POSTS)} | all |", "|---" * (len(POSTS) + 3) + "|"]
    for ruling, meaning in RULINGS.items():
        numbers = [given[ruling, post] for post in POSTS]
        lines.append(f"| **{ruling}** | {meaning} | {' | '.join(map(str, numbers))} | {sum(numbers)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the proofs; write the page when all of them hold."""
    argparse.ArgumentParser(description=main.__doc__).parse_args()
    import pytest

    failed = pytest.main(["-q", "-p", "no:cacheprovider", *map(str, sorted(HERE.glob("test_post_*.py")))])
    if failed:
        print("docs/verdicts.md is left as it is: a proof failed")
        return int(failed)
    PAGE.write_text(page(), encoding="utf-8")
    print("wrote docs/verdicts.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
