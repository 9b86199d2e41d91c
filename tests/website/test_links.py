"""Links of the site's pages: to pages, to anchors, to files elsewhere; and none inside a program."""

import pytest

from website import links
from website.layout import Layout

SHOWN = Layout(pages=frozenset({"docs/a.md", "notebooks/01_x.ipynb"}))


@pytest.mark.parametrize(
    ("written", "on_the_site"),
    [
        ("[x](../notebooks/01_x.ipynb)", "[x](../notebooks/01_x.ipynb)"),
        ("[x](../notebooks/01_x.ipynb#The-table-by-name)", "[x](../notebooks/01_x.ipynb#the-table-by-name)"),
        (
            "[a `.cuda()`](../notebooks/01_x.ipynb#A-.cuda%28%29%2C-b)",
            "[a `.cuda()`](../notebooks/01_x.ipynb#a-cuda-b)",
        ),
        ("[top](../README.md)", "[top](../index.md)"),
        ("[c](../packages/multigpu/docs/failures.md#checkpoints)", "[c](../failures/index.md#checkpoints)"),
        ("[all](../packages/multigpu/docs/failures.md)", "[all](../failures/index.md)"),
        ("[search](../notebooks/failures.ipynb)", "[search](../failures/index.md)"),
        ("[code](../frcnn_lite/ops/nms.py)", "code"),
        ("[out](https://pytorch.org)", "[out](https://pytorch.org)"),
        ("`[x](../README.md)`", "`[x](../README.md)`"),
        ("```md\n[x](../README.md)\n```\n[x](../README.md)", "```md\n[x](../README.md)\n```\n[x](../index.md)"),
    ],
)
def test_links_lead_where_the_page_is(written, on_the_site):
    assert links.on_site(written, "docs/a.md", "docs/a.md", SHOWN) == on_the_site


def test_a_file_that_is_not_a_page_is_linked_at_github_where_the_project_has_an_address():
    linked = links.on_site(
        "[code](../frcnn_lite/ops/nms.py), [all](../frcnn_lite/ops)", "docs/a.md", "docs/a.md", SHOWN, "me/it"
    )
    assert linked == (
        "[code](https://github.com/me/it/blob/main/frcnn_lite/ops/nms.py), [all](https://github.com/me/it/tree/main/frcnn_lite/ops)"
    )
