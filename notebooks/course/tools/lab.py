"""How `make lab` opens and saves the notebooks of the series, so that reading one leaves its file as it was.

JupyterLab is started with `--ServerApp.contents_manager_class=course.tools.lab.Contents`. A notebook in stored form
is handed out with the metadata of this machine's kernel, which JupyterLab would otherwise write into it at once and
call it changed. When it is saved, its live outputs become still and its metadata those of the stored form again.
All other notebooks pass through untouched.
"""

from typing import Any

from ipykernel.ipkernel import IPythonKernel
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

from course.kit.live import OWNER, still_outputs
from course.tools.store import METADATA, cell_metadata, short_traceback

STORED = {OWNER: {"form": "stored"}}  # marks what was handed out, so that it is known again when it is saved


class Contents(AsyncLargeFileManager):
    """Files as JupyterLab's own manager has them, but for the notebooks of the series."""

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> dict[str, Any]:
        """The model of a file; a notebook in stored form has the metadata of its kernel."""
        model = await super().get(path, content, *args, **options)
        if model["type"] == "notebook" and content and model["content"]["metadata"] == METADATA:
            model["content"]["metadata"] = {**self._of_the_kernel(), **STORED}
        return model

    async def save(self, model: dict[str, Any], path: str = "") -> dict[str, Any]:
        """Save a file; a notebook that was handed out in stored form is written in it."""
        notebook = model.get("content") if model.get("type") == "notebook" else None
        if notebook and notebook["metadata"].get(OWNER) == STORED[OWNER]:
            model = {**model, "content": written_form(notebook)}
        return await super().save(model, path)

    def _of_the_kernel(self) -> dict[str, Any]:
        """What JupyterLab writes into a notebook when the kernel of this environment has started."""
        name = METADATA["kernelspec"]["name"]
        try:
            spec = KernelSpecManager(parent=self.parent).get_kernel_spec(name)
        except NoSuchKernel:  # JupyterLab will ask which one to take
            return METADATA
        kernelspec = {"display_name": spec.display_name, "language": spec.language, "name": name}
        return {"kernelspec": kernelspec, "language_info": IPythonKernel.language_info}


def written_form(notebook: dict[str, Any]) -> dict[str, Any]:
    """A notebook as its file holds it after a reader's visit: what the visit left of itself is gone, the edits stay.

    A source that the reader opened to look at is hidden again where the stored form hides it.
    Cells keep whether they are trusted, since the server signs by that. Execution counts are those of a run from top
    to bottom, whatever was run twice. An error on purpose is one line; a reader's own keeps its traceback.
    """
    return {
        **notebook,
        "metadata": METADATA,
        "cells": [_written(cell, count) for count, cell in _numbered(notebook["cells"])],
    }


def _numbered(cells: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Each cell with the number of code cells up to it."""
    numbered, count = [], 0
    for cell in cells:
        count += cell["cell_type"] == "code"
        numbered.append((count, cell))
    return numbered


def _written(cell: dict[str, Any], count: int) -> dict[str, Any]:
    kept = cell_metadata(cell) | {key: value for key, value in cell["metadata"].items() if key == "trusted" and value}
    written = {**cell, "metadata": kept}
    if cell["cell_type"] != "code":
        return written
    written["outputs"] = still_outputs(cell["outputs"])
    if cell.get("execution_count") is not None:
        written["execution_count"] = count
    for output in written["outputs"]:
        if output["output_type"] == "execute_result":
            output["execution_count"] = written["execution_count"]
        if output["output_type"] == "error" and "raises-exception" in kept.get("tags", []):
            output["traceback"] = short_traceback(output)
    return written
