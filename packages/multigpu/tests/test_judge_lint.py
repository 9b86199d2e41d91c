"""The program that judges the linter on pages of others."""

import pytest
from judge_lint import judge

PAGE = """\
from torch import nn

model = nn.DataParallel(net)
loss = model(x)
loss.backward()
torch.load(path)
"""


def test_faults_are_found_or_missed_and_other_findings_are_named(tmp_path):
    (tmp_path / "page.py").write_text(PAGE)
    (tmp_path / "expected.tsv").write_text("page.py\t4\ta vector goes backward\npage.py\t1\tno seed\n")
    told = judge(tmp_path)
    assert [(fault.line, [each.rule for each in found]) for fault, found in told.found] == [(4, ["FL010"])]
    assert [fault.what for fault in told.missed] == ["no seed"]
    assert [each.rule for each in told.other] == ["FL014"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("page.py 4 words", "must be a page, a line and words"),
        ("page.py\t9\twords", "page.py has 6 lines, so there is no"),
    ],
)
def test_a_line_that_says_nothing_is_an_error(tmp_path, line, message):
    (tmp_path / "page.py").write_text(PAGE)
    (tmp_path / "expected.tsv").write_text(line + "\n")
    with pytest.raises(ValueError, match=message):
        judge(tmp_path)
