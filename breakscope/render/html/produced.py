"""What compiles produced, as far as a page has room for it: texts, and the source lines that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from breakscope.errors import ArtifactError
from breakscope.render.html.texts import block, name
from breakscope.report.model import Artifact, Finding, Report
from breakscope.view.artifacts import TITLES
from breakscope.view.text import count

ReadArtifact = Callable[[str], str]
"""Gives the text with a digest. Raises ArtifactError: it is not there."""

_LARGEST = 150_000  # characters of one text
_CHARACTERS = 1_500_000  # characters of all texts in one page
_MOST_COMPILES = 200
_LINKS = 20_000  # of one page
# Graphs and Inductor's code: "# File: /work/a.py:4 in f, code: …"; guards: "# work/a.py:4 in f".
_PLACE = re.compile(r"# (?:File: )?(?P<file>[^#\n]+\.py):(?P<line>\d+) in ")
# A kernel of Inductor's names the nodes of Dynamo's graph that it was made from.
_NODES = re.compile(r"Source Nodes: \[(?P<names>[^\]]*)\]")
_NODE = re.compile(r"\s+(?P<name>\w+)(?:: \"[^\"]*\")? = ")

Place = tuple[int, int]
"""Index into the page's files, and a line."""


@dataclass(frozen=True, slots=True)
class Text:
    """One text, once for all compiles that produced it.

    Attributes:
        places: (line of the text, index into the page's files, line of that file) of what it was made from.
    """

    text: str
    places: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that was kept of a compile.

    Attributes:
        text: index into the texts; None where the page does not have it, and ``note`` says why.
    """

    title: str
    size: str
    text: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """One compile; ``findings`` are indexes into the page's, of those that it is about."""

    title: str
    function: str
    parts: tuple[Part, ...]
    findings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Produced:
    """All of them; ``left_out`` compiles are in the report's folder only."""

    compiles: tuple[Compiled, ...]
    texts: tuple[Text, ...]
    left_out: int


def produced(
    report: Report, read: ReadArtifact | None, findings: Sequence[Finding], files: Sequence[str]
) -> Produced | None:
    """What was kept of a report's compiles; None where nothing was, or nobody can read it.

    Args:
        findings: in the order of the page.
        files: those whose source the page shows, by the names that the report has for them.
    """
    if read is None or not report.artifacts:
        return None
    by_compile: dict[tuple[int, str], list[Artifact]] = {}
    for artifact in report.artifacts:
        by_compile.setdefault((artifact.rank, artifact.compile_id), []).append(artifact)
    functions = {(one.rank, one.compile_id): one.function for one in report.compiles}
    # Regions have the name by which their source calls the function.
    functions |= {(region.rank, region.compile_id): region.function for region in report.regions}
    shelf = _Shelf(read, files)
    made = []
    for (rank, compile_id), kept in list(by_compile.items())[:_MOST_COMPILES]:
        ordered = sorted(kept, key=lambda one: list(TITLES).index(one.kind))
        nodes = shelf.nodes([one for one in kept if one.kind == "graph"])
        made.append(
            Compiled(
                title=name(compile_id) + (f" on rank {rank}" if report.run.world_size > 1 else ""),
                function=name(functions.get((rank, compile_id), "")),
                parts=tuple(shelf.part(one, nodes) for one in ordered),
                findings=tuple(
                    number
                    for number, finding in enumerate(findings)
                    if rank in finding.ranks and compile_id in finding.counts.compile_ids
                ),
            )
        )
    return Produced(tuple(made), tuple(shelf.texts), len(by_compile) - len(made))


class _Shelf:
    """The texts of a page, within its limits."""

    def __init__(self, read: ReadArtifact, files: Sequence[str]) -> None:
        self.texts: list[Text] = []
        self._read = read
        self._files = files
        self._known: dict[str, tuple[int | None, str]] = {}
        self._indexes: dict[str, int | None] = {}
        self._left = _CHARACTERS
        self._links_left = _LINKS

    def part(self, one: Artifact, nodes: Mapping[str, Place]) -> Part:
        """What the page has of an artifact.

        Args:
            nodes: where the nodes of the compile's graph come from.
        """
        if one.digest not in self._known:
            self._known[one.digest] = self._take(one, nodes)
        index, note = self._known[one.digest]
        return Part(TITLES[one.kind], count(one.size, "byte"), index, note)

    def nodes(self, graphs: Sequence[Artifact]) -> dict[str, Place]:
        """Where the nodes of Dynamo's graphs come from: the comment above each says it."""
        found: dict[str, Place] = {}
        for graph in graphs:
            index = self.part(graph, {}).text
            if index is None:
                continue
            places = {line: place for line, *place in self.texts[index].places}
            here: list[int] | None = None
            for number, line in enumerate(self.texts[index].text.split("\n"), 1):
                here = places.get(number, here)
                node = _NODE.match(line)
                if node is not None and here is not None:
                    found[node["name"]] = (here[0], here[1])
        return found

    def _take(self, one: Artifact, nodes: Mapping[str, Place]) -> tuple[int | None, str]:
        if min(one.size, _LARGEST) > self._left:
            return None, f"The page holds no more; breakscope show {name(one.compile_id)} prints it."
        try:
            whole = self._read(one.digest)
        except ArtifactError as error:
            return None, name(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        text = block(whole[:_LARGEST], _LARGEST)
        if len(whole) > _LARGEST:
            text += f"\n… {len(whole) - _LARGEST:,} more characters: breakscope show {name(one.compile_id)}"
        self._left -= len(text)
        self.texts.append(Text(text, tuple(self._places(text, nodes))))
        return len(self.texts) - 1, ""

    def _places(self, text: str, nodes: Mapping[str, Place]) -> list[tuple[int, int, int]]:
        found = []
        for number, line in enumerate(text.split("\n"), 1):
            place = self._place(line, nodes)
            if place is not None and self._links_left:
                self._links_left -= 1
                found.append((number, *place))
        return found

    def _place(self, line: str, nodes: Mapping[str, Place]) -> Place | None:
        if (said := _PLACE.search(line)) is not None:
            file = self._file(said["file"])
            return None if file is None else (file, int(said["line"]))
        if (made_from := _NODES.search(line)) is not None:
            return next((nodes[node] for node in made_from["names"].split(", ") if node in nodes), None)
        return None

    def _file(self, said: str) -> int | None:
        """The page's file that a text means: by its whole name, or by its end where only one ends so."""
        if said not in self._indexes:
            same = [number for number, file in enumerate(self._files) if file == said]
            ends = [number for number, file in enumerate(self._files) if file.endswith(f"/{said}")]
            found = same or ends
            self._indexes[said] = found[0] if len(found) == 1 else None
        return self._indexes[said]
