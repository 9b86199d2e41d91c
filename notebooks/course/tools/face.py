"""The README's picture and numbers: both are computed, so neither can be forgotten when the project changes.

python -m course face     # writes docs/images/ten_rows_in.svg, the same for telephones, and the numbers in README.md
"""

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

import vgpu
from course.kit.figures.digits import cast
from course.kit.figures.flow import Flow
from course.kit.figures.scatter_flow import scatter_flow
from course.kit.figures.svg import Figure
from course.kit.files import NOTEBOOKS
from course.kit.learn.by_key import exercise_names
from course.kit.step_trace import trace_step
from course.tools import reading_order
from course.tools.generated import write_or_check
from course.tools.lesson import Lesson, read_series
from multigpu.failures import catalogue

ROOT = NOTEBOOKS.parent
VGPU_DOCS = ROOT / "packages" / "vgpu" / "docs"
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "ten_rows_in.svg"
NARROW_PICTURE = PICTURE.with_stem("ten_rows_in_narrow")
NUMBERS = re.compile(
    r"(?<=<!-- numbers: written by notebooks/course/tools/face.py -->\n).*?(?=<!-- end of numbers -->)", re.S
)
PARTS = re.compile(
    r"(?<=<!-- parts: written by notebooks/course/tools/face.py -->\n).*?(?=<!-- end of parts -->)", re.S
)
# What a reader can repair after a part of the series, by the number of its first notebook.
REPAIRS = {
    "00": "rows that vanish, losses that change with the number of GPUs, tensors on the wrong GPU, a full `cuda:0`",
    "07": "hangs, wrong means, parameters without gradients, launches on several machines, models that do not fit, "
    "errors that come late, races between streams",
    "12": "a detector that learns nothing, reports an object twice, or breaks on two GPUs; then one on your own boxes",
    "23": "slow loops over small layers, packed weights in the wrong order",
    "27": "learning rates, seeds, in-place errors, checkpoints, exports, and tests that nobody ran",
    "18": "a detector of 2017, line by line, and the one fault that its author left open",
}


class Model(nn.Module):
    """The README's program: it gives back what it gets."""

    def forward(self, digits: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        return digits


def picture(narrow: bool = False) -> Figure:
    """Ten digits and one query go through `nn.DataParallel` on two GPUs, as they really do; narrow: for a telephone."""
    digits, query = torch.tensor(cast()).unsqueeze(1), torch.randn(1, 16)
    with vgpu.virtual_gpus(2):
        dp = nn.DataParallel(Model(), device_ids=[0, 1])
        with trace_step(dp) as trace:
            dp(digits, query)
        return scatter_flow(Flow.from_trace(trace, 2, digits=digits, query=query), narrow=narrow)


def numbers() -> str:
    """The README's proof in numbers, each beside the page or the test that it comes from."""
    pytorch = (VGPU_DOCS / "results.md").read_text(encoding="utf-8")
    operators, all_operators = _numbers(r"^\| operators \(OpInfo\), float32 \|.* (\d+) of (\d+) \|$", pytorch)
    parallel, all_parallel = _numbers(r"^\| `test_data_parallel.py`, main \| (\d+) of (\d+) \|", pytorch)
    others = (VGPU_DOCS / "third-party.md").read_text(encoding="utf-8")
    suites = re.findall(r"^\| \[.+?\]\(#.+?\) \| .+? \| (\d+) \| (\d+) \|", others, re.M)
    passed, failed = (sum(map(int, column)) for column in zip(*suites, strict=True))
    failures = catalogue()
    shown = sum(failure.mark == "today" for failure in failures)
    lessons = read_series()
    exercises = sum(len(exercise_names(lesson.number)) for lesson in lessons)
    lines = [
        f"**{parallel} of {all_parallel}** tests of PyTorch's own `test_data_parallel.py` pass on virtual GPUs"
        f" ([how they are run](packages/vgpu/tools/oracle.py)), and so do {operators} of the {all_operators} operators"
        " in its test tables, forward and backward ([test](packages/vgpu/tests/test_vgpu_opinfo.py),"
        " [all results](packages/vgpu/docs/results.md)).",
        f"**{passed} of {passed + failed}** tests of accelerate, Lightning, ignite, DeepSpeed and other projects pass"
        " ([how they are run](packages/vgpu/tools/third_party.py),"
        " [the reason of each failure](packages/vgpu/docs/third-party.md)).",
        f"**{len(failures)}** multi-GPU bugs are in [the catalogue](packages/multigpu/docs/failures.md), each with "
        f"cause and fix; for {shown} [a test](packages/multigpu/tests/test_programs.py) makes the bug happen and runs"
        " the fix. The others need hardware or libraries that the tests lack, or are history, and cite public threads.",
        f"**{len(lessons)}** notebooks, about {sum(lesson.minutes for lesson in lessons) // 60} hours, come with "
        f"**{exercises}** exercises that check your code and explain the usual mistakes"
        " ([test](notebooks/course/tests/learn/test_exercises.py), [the map](notebooks/00_start_here.ipynb)).",
    ]
    return "".join(f"- {line}\n" for line in lines)


def parts() -> str:
    """The parts of the series: which notebooks, how long, and what a reader can repair afterwards."""
    lessons = read_series()
    rows = ["| part | notebooks | hours | what you can repair |", "|---|---|---|---|"]
    for start, name in reading_order.PARTS.items():
        members = [lesson for lesson in lessons if reading_order.part_of(lesson.number) == start]
        hours = round(sum(lesson.minutes for lesson in members) / 60)
        rows.append(f"| {name} | {_spans(members)} | {hours} | {REPAIRS[start]} |")
    return "\n".join(["", *rows, ""]) + "\n"


def _spans(lessons: Sequence[Lesson]) -> str:
    """Links to notebooks in reading order: to the first and the last where three or more numbers follow each other."""
    spans: list[list[Lesson]] = []
    for lesson in lessons:
        if spans and int(lesson.number) == int(spans[-1][-1].number) + 1:
            spans[-1].append(lesson)
        else:
            spans.append([lesson])
    ends = [[span[0], span[-1]] if len(span) > 2 else span for span in spans]
    links = [[f"[{lesson.number}](notebooks/{lesson.file})" for lesson in end] for end in ends]
    words = (" to " if len(span) > 2 else ", " for span in spans)
    return ", ".join(word.join(link) for word, link in zip(words, links, strict=True))


def _numbers(pattern: str, page: str) -> tuple[int, ...]:
    match = re.search(pattern, page, re.M)
    if match is None:
        raise ValueError(f"no line of the page matches {pattern!r}")
    return tuple(map(int, match.groups()))


def readme() -> str:
    """README.md with the parts of the series and the numbers of today."""
    text = README.read_text(encoding="utf-8")
    for name, place, written in (("parts", PARTS, parts()), ("numbers", NUMBERS, numbers())):
        if not (found := place.search(text)):
            raise ValueError(f"README.md has no place for the {name}, between `<!-- {name}: ... -->` and its end")
        text = text[: found.start()] + written + text[found.end() :]
    return text


def files() -> dict[Path, str]:
    """What this module writes, by its place."""
    return {PICTURE: picture().markup, NARROW_PICTURE: picture(narrow=True).markup, README: readme()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or say under --check which are out of date."""
    return write_or_check("face", __doc__, files, arguments)
