"""Layers that replace loops: serial blocks packed side by side, many small Linears at once."""

from frcnn_lite.layers.fast_group_linear import FastGroupLinear
from frcnn_lite.layers.group_linear import GroupLinear, class_to_group
from frcnn_lite.layers.pack import pack_serial_blocks, pack_state_dicts, unpack, unpack_state_dict

__all__ = [
    "FastGroupLinear",
    "GroupLinear",
    "class_to_group",
    "pack_serial_blocks",
    "pack_state_dicts",
    "unpack",
    "unpack_state_dict",
]
