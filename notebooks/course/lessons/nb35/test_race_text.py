"""A race as notebook 35 shows it: the same words in every run."""

import pytest
import torch

import vgpu
from course.lessons.nb35.race_text import race_text

pytestmark = pytest.mark.virtual_gpus(1)


def test_no_address_and_no_file_and_one_line_of_each_access():
    side, rows = torch.cuda.Stream(), torch.ones(4).pin_memory()
    with vgpu.races(error=False) as found:
        with torch.cuda.stream(side):
            batch = rows.to("cuda", non_blocking=True)
        batch.sum()
    text = race_text(found[0])
    assert "by the side stream" in text and "0x" not in text and ".py" not in text
    assert text.count("      line ") == 2 and "batch.sum()" in text
