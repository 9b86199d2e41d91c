"""Marks the code in the prose of an entry, so markdown shows `__slots__` and `--gpus 2` as they are typed.

The entries are written without such marks, because a terminal shows them as they are.
"""

import re

LEVELS = 3  # of brackets within brackets that a call may have


def _brackets(levels: int) -> str:
    inner = rf"|{_brackets(levels - 1)}" if levels else ""
    return rf"\((?:[^()`]{inner})*\)"


QUOTED = r"(?:\"[^\"`]*\"|'[^'`]*')"
CALL = rf"\.?[A-Za-z_][\w.]*{_brackets(LEVELS)}(?:\.\w+(?:{_brackets(LEVELS)})?|\[[^\[\]`]*\])*"
SET = rf"(?<![\w.])[A-Za-z_][\w.]*=(?:{QUOTED}|\{{[^{{}}`]*\}}|[^\s;()\"'`]*[\w/}}])"
OPTION = rf"(?<![\w/-])--[A-Za-z][\w-]*(?:=(?:{QUOTED}|[^\s;()\"'`]*[\w/}}])| https?://[\w./-]*\w)?"
COMMANDS = (
    r"(?:python3?(?: -m (?:multigpu )?[\w.]+)?|torchrun|accelerate launch|deepspeed|pip (?:install|list|uninstall)"
    r"|conda \w+|docker run|nvidia-smi(?: \w+)?|srun|sbatch|mpirun|vllm serve|ray \w+|git \w+|sudo [\w-]+|grep|ldd"
    r"|pgrep|py-spy dump|export|unset|ulimit|bash)"
)
PIPE = rf"\| (?:grep|head|tail)(?: -\w+)*(?: (?:{QUOTED}|[\w-]+))?"
VALUE = (
    r"(?:\$\([^()`]*\)|[\w~./*:<>{},+-]*(?:[\d~/*_}]|\.\w|[A-Z]{2})[\w~/*}]*)"  # a number, a path, a name in capitals
)
COMMAND = rf"(?:{SET} )*(?<![\w-]){COMMANDS}(?: (?:{OPTION}|-[A-Za-z]\w*|{QUOTED}|{SET}|{VALUE}|{PIPE}))+"
WORD = r"\$?[\w./-]*_[\w./-]*\w|\w*<[A-Za-z][^<>`]*>|[^\s,;()\"`]*\*[^\s,;()\"`]*"
LINK = r"\[[^\[\]]*\]\([^()]*\)"
CODE = re.compile(rf"(`+)(?!`).+?(?<!`)\1(?!`)|{LINK}|(?P<code>{COMMAND}|{CALL}|{SET}|{OPTION}|{WORD})|(?P<lone>`)")


def marked(prose: str) -> str:
    """Prose of an entry as markdown: commands, options, calls and names with underscores are put between backticks."""
    return CODE.sub(_shown, prose)


def _shown(found: re.Match[str]) -> str:
    if found["lone"]:  # the title of a thread may end within its code
        return "\\`"
    return f"`{found[0]}`" if found["code"] else found[0]
