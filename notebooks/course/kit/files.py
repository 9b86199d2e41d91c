"""Where the files lie that notebooks read, wherever a notebook itself lies: a reader's copy finds them, too."""

from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[2]
POSTS = NOTEBOOKS / "posts"  # programs as their authors printed them
CHECKPOINTS = NOTEBOOKS / "checkpoints"  # trained weights
SCRIPTS = NOTEBOOKS / "scripts"  # complete programs to copy, which torchrun starts
