"""The prose of the catalogue as markdown: what is code is marked as code."""

import re

import pytest

from multigpu.failures import catalogue
from multigpu.failures.marking import marked
from multigpu.failures.page import page


@pytest.mark.parametrize(
    ("prose", "shown"),
    [
        ("keeps in __slots__ what it has", "keeps in `__slots__` what it has"),
        (
            "torchrun --standalone --nproc-per-node 2 train.py in tmux",
            "`torchrun --standalone --nproc-per-node 2 train.py` in tmux",
        ),
        (
            'python -c "import torch; print(torch.__version__)" here',
            '`python -c "import torch; print(torch.__version__)"` here',
        ),
        ("print({n: len(p) for n, p in net.items()}), twice", "`print({n: len(p) for n, p in net.items()})`, twice"),
        ("take --gpus 1, or NCCL_DEBUG=INFO.", "take `--gpus` 1, or `NCCL_DEBUG=INFO`."),
        (
            "the model's `.module` and [two-devices](#two-devices)",
            "the model's `.module` and [two-devices](#two-devices)",
        ),
        ("a '<map object>' from libcuda.so*", "a '`<map object>`' from `libcuda.so*`"),
        (
            "one rank, two ranks (or three) -- and nvidia-smi shows it",
            "one rank, two ranks (or three) -- and nvidia-smi shows it",
        ),
    ],
)
def test_code_is_marked_and_words_are_not(prose: str, shown: str) -> None:
    assert marked(prose) == shown


def test_marking_changes_no_word() -> None:
    for entry in catalogue():
        for prose in (entry.title, entry.cause, entry.check, entry.fix):
            shown = marked(prose)
            assert shown.replace("`", "") == prose.replace("`", "") and shown.count("`") % 2 == 0, entry.id


def test_index_shows_no_name_and_no_option_outside_of_code() -> None:
    """There `__slots__` would be bold, `<map object>` gone, and the hyphens of `--gpus` one dash."""
    prose = re.sub(r"```(?s:.*?)```|(`+)(?!`).+?(?<!`)\1(?!`)", "", page())
    assert re.findall(r".*(?<!\w)__\w.*|.*(?<!\S)--\w.*|.*<\w[^<>\n]*>.*", prose) == []
