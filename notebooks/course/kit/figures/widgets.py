"""Sliders over a figure: the same pure function that draws the static frame, called again for every move."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from course.kit import live
from course.kit.figures.svg import Figure


class SliderFigure:
    """A live figure in JupyterLab; one line of text wherever no kernel answers."""

    def __init__(self, draw: Callable[..., Figure], ranges: Mapping[str, tuple[int, int, int]]) -> None:
        import ipywidgets

        self.draw = draw
        style = {"description_width": "initial"}  # room for the whole name
        self.sliders = {
            name: ipywidgets.IntSlider(value=start, min=low, max=high, description=name.replace("_", " "), style=style)
            for name, (low, high, start) in ranges.items()
        }
        self.picture, self.words = ipywidgets.HTML(layout={"overflow": "auto"}), ipywidgets.HTML()
        self._redraw()
        for slider in self.sliders.values():
            slider.observe(self._redraw, names="value")
        self.widget = live.box(self.sliders.values(), [self.picture, self.words])

    def _redraw(self, _change: Any = None) -> None:
        """Raises whatever `draw` raises at the first call, so that a broken widget fails its cell."""
        figure = self.draw(**{name: slider.value for name, slider in self.sliders.items()})
        self.picture.value = figure.markup
        self.words.value = f'<p aria-live="polite">{escape(figure.description)}</p>'

    def _repr_mimebundle_(self, **formats: Any) -> dict[str, Any]:
        *others, last = (slider.description for slider in self.sliders.values())
        names = f"{', '.join(others)} and {last}" if others else last
        text = f"Live in JupyterLab: sliders for {names}. The figure above is one of its frames."
        return {**self.widget._repr_mimebundle_(**formats), "text/plain": text}


def sliders(draw: Callable[..., Figure], **ranges: tuple[int, int, int]) -> SliderFigure:
    """One integer slider per argument of `draw`.

    draw: pure function of the named integers to a Figure; ranges: name=(lowest, highest, start).
    Raises ValueError when a start lies outside its range. The static twin is a call of `draw` in the cell before.
    """
    for name, (low, high, start) in ranges.items():
        if not low <= start <= high:
            raise ValueError(f"{name}: start {start} lies outside {low}..{high}")
    if not ranges:
        raise ValueError("sliders needs at least one name=(lowest, highest, start)")
    return SliderFigure(draw, ranges)
