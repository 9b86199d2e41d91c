"""A race in words that are the same in every run: without the name of a cell's file and the address of a stream."""

import re
from textwrap import fill

FRAME = re.compile(r"^      \S+?:(\d+) in ([\w<>]+): ")
COLUMNS = 110


def race_text(race: Exception) -> str:
    """What `vgpu.races()` says of a race, with the innermost line of each access."""
    lines: list[str] = []
    inside = False  # of an access, whose innermost line has been shown
    for line in re.sub(r"stream 0x[0-9a-f]+ of cuda:\d", "the side stream", str(race)).splitlines():
        is_frame = bool(FRAME.match(line))
        if not (is_frame and inside):
            lines.append(fill(FRAME.sub(r"      line \1 in \2: ", line), COLUMNS, subsequent_indent="    "))
        inside = is_frame
    return "\n".join(lines)
