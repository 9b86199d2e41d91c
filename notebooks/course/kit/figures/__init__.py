"""Figures of the series: pure functions from state to SVG with a text alternative."""

from course.kit.figures.bars import bars
from course.kit.figures.case_board import Ending, case_board
from course.kit.figures.curves import curves
from course.kit.figures.detections import detections
from course.kit.figures.device_lanes import DeviceLog, Lane, device_lanes
from course.kit.figures.digits import cast
from course.kit.figures.filmstrip import filmstrip
from course.kit.figures.flow import Flow
from course.kit.figures.palette import GPU_COLOURS, KIND_COLOURS
from course.kit.figures.panels import Panel, panels
from course.kit.figures.row_weights import row_weights
from course.kit.figures.scatter_flow import scatter_flow
from course.kit.figures.scene_sheet import scene_sheet
from course.kit.figures.svg import Canvas, Figure
from course.kit.figures.widgets import sliders

__all__ = [
    "GPU_COLOURS",
    "KIND_COLOURS",
    "Canvas",
    "DeviceLog",
    "Ending",
    "Figure",
    "Flow",
    "Lane",
    "Panel",
    "bars",
    "case_board",
    "cast",
    "curves",
    "detections",
    "device_lanes",
    "filmstrip",
    "panels",
    "row_weights",
    "scatter_flow",
    "scene_sheet",
    "sliders",
]
