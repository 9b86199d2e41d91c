"""Figures of the series: pure functions from state to SVG with a text alternative."""

from course.figures.anchor_fit import anchor_fit
from course.figures.annotated_panel import annotated_panel
from course.figures.balance_bars import balance_bars
from course.figures.bars import bars
from course.figures.call_trace import CallTrace, trace_calls
from course.figures.case_board import Ending, case_board
from course.figures.cast_sheet import cast_sheet
from course.figures.collective_lanes import collective_lanes
from course.figures.curves import curves
from course.figures.detections import detections
from course.figures.device_lanes import DeviceLog, Lane, device_lanes
from course.figures.digit_rows import digit_rows
from course.figures.digits import cast
from course.figures.fed_cells import fed_cells
from course.figures.filmstrip import filmstrip
from course.figures.flow import Flow
from course.figures.found_panel import found_panel
from course.figures.idle_heatmap import idle_heatmap
from course.figures.memory_shares import memory_shares
from course.figures.memory_timeline import megabytes, memory_timeline
from course.figures.palette import GPU_COLOURS, KIND_COLOURS
from course.figures.panels import Panel, panels
from course.figures.pipeline_slots import pipeline_slots
from course.figures.placement import Placement, placement
from course.figures.plan_bars import Plan, gigabytes, plan_bars
from course.figures.precision_recall import precision_recall
from course.figures.rank_samples import rank_samples
from course.figures.ranked_boxes import ranked_boxes
from course.figures.reads_where import reads_where
from course.figures.region_scores import region_scores
from course.figures.roi_bins import roi_figure
from course.figures.row_weights import row_weights
from course.figures.scatter_flow import scatter_flow
from course.figures.scene_sheet import scene_sheet
from course.figures.shared_slot import Use, shared_slot
from course.figures.step_lanes import step_lanes
from course.figures.suppression import suppression_step
from course.figures.suppression_rounds import kept_boxes, suppression_rounds
from course.figures.svg import Canvas, Figure
from course.figures.tensor_flow import tensor_flow
from course.figures.tensor_tiles import Tile, tensor_tiles
from course.figures.thread_map import memory_order, thread_map
from course.figures.whole_layers import whole_layers
from course.figures.widgets import sliders
from course.figures.worst_errors import worst_errors

__all__ = [
    "GPU_COLOURS",
    "KIND_COLOURS",
    "CallTrace",
    "Canvas",
    "DeviceLog",
    "Ending",
    "Figure",
    "Flow",
    "Lane",
    "Panel",
    "Placement",
    "Plan",
    "Tile",
    "Use",
    "anchor_fit",
    "annotated_panel",
    "balance_bars",
    "bars",
    "case_board",
    "cast",
    "cast_sheet",
    "collective_lanes",
    "curves",
    "detections",
    "device_lanes",
    "digit_rows",
    "fed_cells",
    "filmstrip",
    "found_panel",
    "gigabytes",
    "idle_heatmap",
    "kept_boxes",
    "megabytes",
    "memory_order",
    "memory_shares",
    "memory_timeline",
    "panels",
    "pipeline_slots",
    "placement",
    "plan_bars",
    "precision_recall",
    "rank_samples",
    "ranked_boxes",
    "reads_where",
    "region_scores",
    "roi_figure",
    "row_weights",
    "scatter_flow",
    "scene_sheet",
    "shared_slot",
    "sliders",
    "step_lanes",
    "suppression_rounds",
    "suppression_step",
    "tensor_flow",
    "tensor_tiles",
    "thread_map",
    "trace_calls",
    "whole_layers",
    "worst_errors",
]
