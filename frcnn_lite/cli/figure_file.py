"""A matplotlib figure as an SVG file that depends on its data alone, with its text as text."""

from pathlib import Path
from typing import TYPE_CHECKING

from frcnn_lite.whole_file import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_svg(figure: "Figure", file: Path, title: str, description: str) -> None:
    """Write the figure; `title` and `description` are what a screen reader and a search find in the file."""
    import matplotlib

    with whole_file(file) as unfinished, matplotlib.rc_context({"svg.hashsalt": "frcnn_lite", "svg.fonttype": "none"}):
        figure.savefig(unfinished, format="svg", metadata={"Date": None, "Title": title, "Description": description})
