"""Names of strangers' files on a terminal, which obeys some characters and cannot print others."""


def printable(text: str) -> str:
    """The same text with escapes, such as \\x1b, for line ends, control characters and halves of characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
