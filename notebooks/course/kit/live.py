"""Live outputs and their still twins: what stays of buttons, sliders and bars when a notebook is written to disk.

A widget lives in a kernel. Stored in a file it comes back as "Error displaying widget: model not found", so a file
holds its still twin instead. An output names its twin in its metadata, `{"frcnn_lite": {"still": BUNDLE}}`, where
BUNDLE maps MIME types to content, or is None where nothing stays. A widget that names none leaves its line of text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

OWNER, STILL = "frcnn_lite", "still"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
BAR = re.compile(r"\[\d+:\d\d(:\d\d)?[<,][^\]]*\]\s*$")  # "train:  40%|████  | 4/10 [00:01<00:02, 3.00step/s]"

BOX, CONTROLS, GONE = "frcnn-lite-box", "frcnn-lite-controls", "frcnn-lite-gone"
DEAD = ".jupyter-widgets-disconnected"
# JupyterLab leaves widgets on the page when their kernel is gone, each with the picture of a broken chain. A button
# that does nothing must not stay, and one line says what the chains would.
STYLE = (
    f"<style>.{GONE}{{display:none}} {DEAD}.{GONE}{{display:block}} {DEAD}.{CONTROLS}{{display:none}}"
    f" .{BOX}{DEAD}::before,.{BOX} {DEAD}::before{{display:none}}</style>"
)
Output = TypeVar("Output", bound=dict[str, Any])  # of JSON, or nbformat's own kind of dict
RUN_AGAIN = "<i>The kernel was restarted since. Run this cell again to bring its controls back.</i>"


def metadata(still: Mapping[str, str] | None) -> dict[str, Any]:
    """The metadata of an output whose still twin is `still`, a MIME bundle, or nothing at all (None)."""
    return {OWNER: {STILL: None if still is None else dict(still)}}


def box(controls: Iterable[Any], below: Iterable[Any], **layout: str) -> Any:
    """A column of widgets: `controls` side by side, which vanish with the kernel they speak to, and what is `below`.

    Controls that do not fit on one line go on in the next.
    """
    import ipywidgets

    row = ipywidgets.HBox(list(controls), layout={"flex_flow": "row wrap"})
    row.add_class(CONTROLS)
    gone = ipywidgets.HTML(STYLE + RUN_AGAIN)
    gone.add_class(GONE)
    column = ipywidgets.VBox([row, gone, *below], layout=layout)
    column.add_class(BOX)
    return column


def still_outputs(outputs: Sequence[Output]) -> list[Output]:
    """The outputs of a cell as a file holds them: every live one replaced by its twin, and one output per stream.

    Where a kernel cuts its text into messages is a matter of timing. The outputs that are passed stay as they are.
    """
    kept: list[Output] = []
    streams: dict[str | None, Output] = {}
    for output in filter(None, map(_twin, outputs)):
        name = output.get("name") if output["output_type"] == "stream" else None
        if name in streams:
            streams[name]["text"] = _joined(streams[name]["text"]) + _joined(output["text"])
            continue
        if name is not None:
            streams[name] = output
        kept.append(output)
    return kept


def _twin(output: Output) -> Output | None:
    """What stays of one output; None where nothing does."""
    twin = type(output)(output)
    if "data" not in output:
        return twin
    marked = output.get("metadata", {}).get(OWNER, {})
    if STILL in marked:
        if marked[STILL] is None:
            return None
        twin["data"] = type(output)(marked[STILL])
        twin["metadata"] = type(output)()
        return twin
    if WIDGET_VIEW not in output["data"]:
        return twin
    if BAR.search(_joined(output["data"].get("text/plain", ""))):
        return None  # how far a run has come is of no use after it
    twin["data"] = type(output)({mime: content for mime, content in output["data"].items() if mime != WIDGET_VIEW})
    return twin


def _joined(text: str | list[str]) -> str:
    """A text as one string; the notebook format allows a list of lines as well."""
    return text if isinstance(text, str) else "".join(text)
