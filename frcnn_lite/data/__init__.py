"""Data sets and batches. Every data set yields `Scene`s; `collate` makes a `Batch` of them."""

from frcnn_lite.data.batch import PADDING_LABEL, Batch, Ignored, Scene, collate
from frcnn_lite.data.dataset import DetectionDataset
from frcnn_lite.data.digits import Glyphs, Split, draw_glyph, load_glyphs
from frcnn_lite.data.photographs import load_photographs
from frcnn_lite.data.scenes import DigitScenes

__all__ = [
    "PADDING_LABEL",
    "Batch",
    "DetectionDataset",
    "DigitScenes",
    "Glyphs",
    "Ignored",
    "Scene",
    "Split",
    "collate",
    "draw_glyph",
    "load_glyphs",
    "load_photographs",
]
