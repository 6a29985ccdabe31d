"""Lines on a terminal: wrapped to a width, with ANSI styles or as plain text."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

NARROWEST, WIDEST = 20, 120  # columns; beyond the widest, what belongs together stands too far apart


def printed(lines: Sequence[Text], *, color: bool) -> str:
    """The lines as text that ends with a newline; without ``color`` it has no control codes."""
    for line in lines:
        line.rstrip()
    if not color:
        return "".join(f"{line.plain}\n" for line in lines)
    # The caller has decided: no variable of the environment may overrule it.
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", _environ={})
    with console.capture() as captured:
        for line in lines:
            console.print(line, soft_wrap=True, highlight=False)
    return captured.get()


def apart(blocks: Iterable[Sequence[Text]]) -> list[Text]:
    """The blocks that hold something, with an empty line between them."""
    return [line for block in blocks if block for line in (Text(), *block)][1:]


class Layout:
    """Wraps to a width; every method returns lines that fit."""

    def __init__(self, width: int) -> None:
        self.width = max(NARROWEST, min(width, WIDEST))
        self._console = Console(file=io.StringIO(), width=self.width, _environ={})

    def wrap(self, text: Text, indent: str = "") -> list[Text]:
        """The text in as many lines as it takes."""
        return [Text.assemble(indent, piece) for piece in self.pieces(text, self.width - len(indent))]

    def pieces(self, text: Text, width: int) -> list[Text]:
        """The text in pieces of at most so many columns; at least one."""
        return list(text.wrap(self._console, width, overflow="fold")) or [Text()]
