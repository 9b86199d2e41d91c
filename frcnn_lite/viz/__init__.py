"""Figures of the series: pure functions from state to SVG with a text alternative."""

from frcnn_lite.viz.anchor_fit import anchor_fit
from frcnn_lite.viz.anchor_picture import anchor_picture
from frcnn_lite.viz.call_trace import CallTrace, trace_calls
from frcnn_lite.viz.case_board import Ending, case_board
from frcnn_lite.viz.cast_sheet import cast_sheet
from frcnn_lite.viz.collective_lanes import collective_lanes
from frcnn_lite.viz.curves import curves
from frcnn_lite.viz.detections import detections
from frcnn_lite.viz.device_lanes import DeviceLog, Lane, device_lanes
from frcnn_lite.viz.digits import cast
from frcnn_lite.viz.flow import Flow
from frcnn_lite.viz.idle_heatmap import idle_heatmap
from frcnn_lite.viz.memory_shares import memory_shares
from frcnn_lite.viz.memory_timeline import megabytes, memory_timeline
from frcnn_lite.viz.placement import Placement, placement
from frcnn_lite.viz.precision_recall import precision_recall
from frcnn_lite.viz.rank_samples import rank_samples
from frcnn_lite.viz.roi_bins import roi_figure
from frcnn_lite.viz.row_weights import row_weights
from frcnn_lite.viz.scatter_flow import scatter_flow
from frcnn_lite.viz.scene_sheet import scene_sheet
from frcnn_lite.viz.suppression import suppression_step
from frcnn_lite.viz.svg import Canvas, Figure
from frcnn_lite.viz.table_windows import table_windows
from frcnn_lite.viz.tensor_flow import tensor_flow
from frcnn_lite.viz.widgets import sliders
from frcnn_lite.viz.worst_errors import worst_errors

__all__ = [
    "CallTrace",
    "Canvas",
    "DeviceLog",
    "Ending",
    "Figure",
    "Flow",
    "Lane",
    "Placement",
    "anchor_fit",
    "anchor_picture",
    "case_board",
    "cast",
    "cast_sheet",
    "collective_lanes",
    "curves",
    "detections",
    "device_lanes",
    "idle_heatmap",
    "megabytes",
    "memory_shares",
    "memory_timeline",
    "placement",
    "precision_recall",
    "rank_samples",
    "roi_figure",
    "row_weights",
    "scatter_flow",
    "scene_sheet",
    "sliders",
    "suppression_step",
    "table_windows",
    "tensor_flow",
    "trace_calls",
    "worst_errors",
]
