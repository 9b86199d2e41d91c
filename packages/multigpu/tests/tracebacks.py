"""Print the traceback that an entry's program ends in, as tests/texts has it: `python tests/tracebacks.py rows-lost`.

It takes torch and vgpu. The stored ones are also read where neither is installed, and in a browser.
"""

import linecache
import re
import sys
import traceback

import torch
from test_programs import IDS, PREAMBLE, run
from torch import distributed

import vgpu

INNER = 3  # the last frames outside of the program are kept: they say where PyTorch raised
FRAME = re.compile(r'(  File "(.+?)", line \d+, in .+\n)((?:    .*\n)*)')
OURS = re.compile(r"/vgpu/src/|/test_programs\.py$|/tracebacks\.py$")  # not there on a machine with GPUs
PLACE = re.compile(r'(?<=File ")[^"]*?(?=/site-packages/)')
ELSEWHERE = re.compile(r"/(?:tmp|root|home)/[\w./-]*|https?://\S+")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def ended(name: str) -> str:
    """What a terminal shows at the end of an entry's program, on four virtual GPUs."""
    source = PREAMBLE + IDS[name].program
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with vgpu.virtual_gpus(4):
        torch.manual_seed(0)
        try:
            run(IDS[name].program, IDS[name])
        except BaseException as error:
            return shortened("".join(traceback.format_exception(error)), name)
        finally:
            if distributed.is_initialized():
                distributed.destroy_process_group()
    raise ValueError(f"the program of {name} ends without an error on this version of PyTorch")


def shortened(text: str, name: str) -> str:
    """A traceback without the frames in the middle of PyTorch, its source lines, and the paths of this machine."""
    frames = [*FRAME.finditer(text)]
    for i, frame in reversed([*enumerate(frames)]):
        later = [other for other in frames[i + 1 :] if "Traceback (most" not in text[frame.end() : other.start()]]
        if frame[2] != name:
            kept = not OURS.search(frame[2]) and len(later) < INNER
            text = text[: frame.start()] + frame[1] * kept + text[frame.end() :]
    program = f'File "{name.replace("-", "_")}.py"'
    return ELSEWHERE.sub("...", PLACE.sub("...", COLOUR.sub("", text.replace(f'File "{name}"', program))))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(ended(name))
