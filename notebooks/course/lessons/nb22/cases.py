"""What several exercises of this lesson try answers on."""

from collections.abc import Sequence

Box = tuple[float, float, float, float]
Objects = Sequence[tuple[str, Box]]
