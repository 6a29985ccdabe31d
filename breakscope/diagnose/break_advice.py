"""What to do about one graph break: the code's instruction, made precise by what the site is for."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from breakscope import catalog
from breakscope.diagnose import break_words, checks, library_advice, source_advice, uses
from breakscope.diagnose.becomes import TAKES_SYMBOLS
from breakscope.diagnose.library_advice import Theirs
from breakscope.diagnose.records import Reason
from breakscope.diagnose.site_use import Seen, Shape, Use
from breakscope.report.owners import is_installed, is_standard
from breakscope.source.syntax import grouped

_IN_FAKE_CALL = re.compile(r"^(?P<type>\w+Error) <[^>]*>: (?P<text>.+)", re.DOTALL)
_EXCEPTION = re.compile(r"raised exception (?P<type>\w+)\((?P<text>.*)\)", re.DOTALL)

_INNER = re.compile(r"<(list|set|dict)comp>$|<genexpr>$")
_COMPREHENSION = re.compile(r"[\[({].+\bfor\b.+\bin\b", re.DOTALL)
_COUNT = re.compile(r"(?<!%)%(?!%)|//")
# Shapes of a test that are advised alike, whether it asks for a tensor or for a number read from it.
_BY_TEST = (
    "python",
    "verdict",
    "search",
    "skip",
    "undone",
    "spared",
    "spared mean",
    "early",
    "optional",
    "books",
    "cells",
    "filter",
    "pairs",
    "steered",
    "listed twice",
    "dropped",
    "whole",
    "best",
    "extreme",
    "backtrace",
    "neighbours",
    "tallies",
    "flag",
)
# What asks for a value, where a call of Python's own (BS107) or a print asks for none.
_OF_VALUES = ("BS101", "BS102", "BS103", "BS105", "BS106", "BS111", "BS123")
_INDEXED = ("index", "pick")
# What is to be called outside of compiled code is in the loop's body as well.
_LEFT_OUT = ("BS115", "BS121")
_BODILESS = (
    *("steered", "listed twice", "list", "backtrace", "neighbours", "tallies", "pairs", "books", "cells"),
    *("filter", "group ranked", "group reduced"),
)
# An array or a tensor, and no number: what a generator of numpy's draws mostly is one.
_DRAWS_MANY = re.compile(
    r"\b(np|numpy)\.random\.(randn?|standard_normal|random(_sample)?|dirichlet|multivariate_normal)\([^)]|"
    r"\bchoice\([^,]+, (?!\w+=)|"
    r"\b(size|generator)=|(?<!\brandom)\.(randn|rand|random|normal|standard_normal|uniform|random_sample|integers|multivariate_normal"
    r"|poisson|exponential|gamma|beta|binomial|laplace)\([^)]"
)
# What is told of these serves in Python's own library as well: a print, a copy, a draw, the clock.
_OWN_WORDS = ("BS104", "BS118", "BS126", "BS127")
# What gives for one element another value where others are left out, along the dimension of the mask.
_TOGETHER = re.compile(
    r"\b(log_softmax|softmax|logsumexp|cumsum|cumprod|sort|argsort|mean|sum|std|var|max|min|amax|amin|median|norm)"
    r"\((\w+\[[^\]]*\](, )?)?((dim=)?0)?\)"
)
_MOST_LINES = 4
_DISABLED = re.compile(r"put torch\.compiler\.disable on the function\b( that holds the line\b|(?! that\b))")
_TESTS = ("branch", "told", "plain", "fast path")
_DRAWN = re.compile(
    r"\btorch\.(rand|randn|randint|randperm|bernoulli|multinomial)\(|\.(uniform|random|bernoulli)_\("
)


@dataclass(frozen=True, slots=True)
class Site:
    """What the source says of where it broke.

    Attributes:
        use: what its value is for. theirs: set for code of a library or of torch.
        condition: the test that reads a tensor, as source; raises: whether the statement is a ``raise``.
        expression: what broke, as source; statement: what stands around it.
        called: what the loop around it calls that can be compiled in its place.
        function: qualified name of the function that holds it.
        module: the module of Python's own library that holds it; else empty.
        asserted: what an assert on tensors can ask for in the place of a check; else empty.
        on_arrays: whether its statement works on arrays that numpy made there; of_array: whether what broke
            is a method of one.
        turns: the loop or comprehension around it, without its body; else empty.
        sides: those of a choice, as source.
        unsafe: what may be infinite or nan on the side of a branch that is not taken, as source; else empty.
        rewritten: the statement without the break, where its text tells that for sure; else empty.
        seen: what was observed of its names.
        within: the function that the script compiles, where the site is in one that this calls; else empty.
        besides: lines of the loop around it that break as well; behind: where there is none, of its function
            below it.
        both_ways: whether its file makes RNNs of two directions.
        read_at: of a property of Python's own the line that reads it: `` of `y = self.size` (net.py:7)``.
        tested: what a later branch asks of a number that the site's branch sets, and the line.
        filled: the test around it that holds only until its object is filled, ``key not in self.params``.
        later: what its test asks of Python's own behind the tensor: ``DEBUG``; else empty.
        misread: what Dynamo reads otherwise than eager (:func:`~breakscope.diagnose.reach.misread`).
        looped_in: the ``while`` around a call that leads to it, ``the loop in line 7 of sample``; else empty.
        repeated_by: the outermost loop in compiled code whose turns may change, ``The loop in line 7 of f``.
    """

    use: Use
    theirs: Theirs | None = None
    condition: str | None = None
    raises: bool = False
    expression: str = ""
    statement: str = ""
    called: tuple[str, ...] = ()
    function: str = ""
    module: str = ""
    asserted: str = ""
    on_arrays: bool = False
    of_array: bool = False
    rewritten: str = ""
    turns: str = ""
    unsafe: str = ""
    sides: str = "…, …"
    seen: Seen = field(default_factory=Seen)
    within: str = ""
    besides: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    both_ways: bool = False
    read_at: str = ""
    looped_in: str = ""
    repeated_by: str = ""
    tested: tuple[str, int] | None = None
    filled: str = ""
    later: str = ""
    misread: tuple[str, str, int] | None = None

    @property
    def shape(self) -> Shape:
        return self.use.shape


_OF_SIZES = re.compile(r"\bgot \w+\(.*(broadcast|sizes?\b|shapes?\b|dimension|out of range)", re.DOTALL)
_PRODUCT = re.compile(r"\b(?:np|numpy)\.prod\((?P<sizes>[\w.]+\.(shape|size\(\))(\[[^\]]*\])?)\)")
_DRAWS_ANEW = re.compile(r"\b(rand\w*|bernoulli|multinomial|normal|dropout)_?\(")


_NO_BRANCH = re.compile(r", where nothing branches on (the size|how many there are)")


def advice(
    code: str,
    inner: str,
    cause: Reason,
    site: Site,
    function: str | None,
    *,
    since: int | None = None,
    in_loop: bool = False,
) -> str:
    """What to do, in one to three sentences.

    Args:
        code: of the finding; inner: of what broke, where the finding is that its frame was given up.
        function: what runs eagerly until then, or what makes an error of a break.
        since: the line behind which alone it does so; None where all of it does.
        in_loop: whether all of it runs eagerly because the break is in a loop.
    """
    until_then = _until_then(code, function, since)
    text = _of_site(code, inner, cause, site, function, until_then, in_loop=in_loop)
    if site.tested is not None and site.theirs is None and "torch.where(" in text:
        asked, line = site.tested
        text += (
            f" What is selected is a tensor then, and so `{asked}` (line {line}) needs torch.where as well."
        )
    if site.use.tests and site.theirs is None:
        asked = f"; {_lines(site.use.tests)} branch{'es' * (len(site.use.tests) == 1)} on it, and breaks then"
        text = _NO_BRANCH.sub(asked, text)
    if _DRAWS_ANEW.search(site.use.mask) and text.count(site.use.mask) > 1:
        text += f" `{site.use.mask}` draws anew wherever it is written: give it a name first, and use that."
    if site.later and site.theirs is None:
        text += f" Put `{site.later}` first in the test: where it is false, nothing asks for the tensor."
    if site.filled and site.theirs is None:
        text += (
            f" It runs only where `{site.filled}`: one call in eager before the first compiled one fills"
            " that, and what comes again does not break here."
        )
    if site.use.own:  # torch.compile of a function takes away the mark that it is not to be compiled
        text = _DISABLED.sub("do not compile the function itself", text)
    if "put torch.compiler.disable on" in text and "one break" not in text:
        text += " A function so marked is one break at each of its calls."
    if not site.within or site.theirs is not None or "in the caller" not in text:
        return text
    if site.looped_in:
        return (
            f"{text} Here the caller is {site.looped_in}, turn after turn: keep that loop outside of the"
            " compiled function, and compile what a turn computes."
        )
    return f"{text} The caller here is that of {site.within}: hand it through what lies between."


def _of_site(
    code: str,
    inner: str,
    cause: Reason,
    site: Site,
    function: str | None,
    until_then: str,
    *,
    in_loop: bool,
) -> str:
    if site.theirs is not None and (of_loss := library_advice.of_loss(inner, site.theirs)) is not None:
        return of_loss
    if inner == "BS114" and _INNER.search(function or ""):
        return break_words.INNER_FIRST
    if code == "BS306" and inner == catalog.GENERIC:
        return catalog.entry(code).fix
    if code in ("BS301", "BS302", "BS305", "BS306") and not inner.startswith("BS3"):
        whole = _of_cause(inner, cause, site).rstrip(".")
        own_loop = in_loop and site.theirs is None
        if own_loop and "zero_grad" in whole:
            return break_words.ZERO_GRAD_IN_LOOP.format(until_then)
        if "torch.compiler.disable" in whole and site.theirs is not None:
            return f"{whole}."  # what runs eagerly is said
        is_said = re.search(
            r"compile (the loop's body|its body|what it calls)|in place of the loop|"
            r"torch\.compiler\.disable on the function",
            whole,
        )
        # A loop that only sets what torch keeps of a tensor, or does Python's own work, has no such body.
        own_loop = own_loop and site.shape not in _BODILESS
        has_body = own_loop and inner not in _LEFT_OUT
        way_out = _of_body(site) if has_body and not is_said and not _INNER.search(function or "") else ""
        # What skips a frame by itself, as an RNN, may stand in a loop that breaks for more.
        may_stay = own_loop or (not in_loop and site.theirs is None)
        besides = _besides(site) if may_stay and "in place of the loop" not in whole else ""
        if way_out and site.use.searched:
            return f"{whole}. Until then {until_then}. {break_words.SEARCHED}"
        return f"{whole}. Until then {until_then}{way_out}.{besides}"
    besides = _besides(site) if code == "BS116" and site.besides and site.theirs is None else ""
    return f"{_of_cause(code, cause, site)}{besides}"


def _of_body(site: Site) -> str:
    called = f" ({' and '.join(site.called)})" if site.called else ""
    return f"; or compile the loop's body{called} instead of the loop"


def _besides(site: Site) -> str:
    """What is to be repaired too before the loop, or what is behind a break, is in a graph."""
    found, of = (site.besides, "of the loop ") if site.besides else (site.behind, "below ")
    if not found:
        return ""
    lines = [str(line) for line in found[:_MOST_LINES]]
    more = ", …" * (len(found) > _MOST_LINES)
    if len(lines) == 1:
        return f" Line {lines[0]} {of}breaks the graph as well."
    said = f"{', '.join(lines)}{more}" if more else f"{', '.join(lines[:-1])} and {lines[-1]}"
    return f" Lines {said} {of}break the graph as well."


def _until_then(code: str, function: str | None, since: int | None) -> str:
    if code == "BS305":
        return f"{function or 'fullgraph=True'} raises"
    part = f"what follows line {since}" if since else "all"
    of = f"{part} of {function or 'the function'}"
    return f"{of} runs eagerly (functions of one's own that it calls are compiled apart)"


def _of_cause(code: str, cause: Reason, site: Site) -> str:
    said = "\n".join((cause.gb_type, cause.explanation, cause.context or ""))
    unmade = cause.gb_type.startswith("Generator re") or "Iterator(" in cause.explanation
    if code in ("BS114", "BS133") and unmade and _COMPREHENSION.match(site.expression):
        return break_words.BREAKS_INSIDE
    if code == "BS105" and re.search(r"\bnms\b", said):
        return break_words.NMS
    if site.misread is not None and _OF_SIZES.search(said):
        kind, what, line = site.misread
        return break_words.MISREAD[kind].format(what, line)
    # Also under capture_scalar_outputs an index is read; in a loop torch names the loop alone.
    is_read = cause.gb_type == "graph break in loop" or "specialized integer from data-dependent" in said
    if is_read and site.use.shape in _INDEXED:
        code = "BS102"
    if code == "BS199" and "data-dependent expression" in said and site.theirs is None:
        is_math = re.match(r"c?math\.\w+\(", site.expression)
        return source_advice.of_math(site.expression) if is_math else break_words.NUMBER_OF_DATA
    if code == "BS107" and re.search(r"\bpack_padded_sequence\(.*\)(\[0\]|\.data\b)", site.statement):
        return break_words.UNPADDED
    if code in ("BS115", "BS121") and site.theirs is None and _runs_again(site):
        return break_words.BY_HAND
    found = None if site.theirs is None else library_advice.of_call(code, site.theirs)
    found = found or _of_record(code, cause, said, site)
    if found is None and site.theirs is None:
        found = _of_seen(code, site)
    if found is None and site.theirs is not None:
        found = _of_library(code, site, site.theirs)
    found = found or _of_source(code, cause, said, site)
    selects = code in ("BS101", "BS102") and "torch.where(" in found and site.theirs is None
    selects = selects and site.shape != "skip"  # of what is written only that is selected
    return (
        f"{found.rstrip('.')}. {break_words.FINITE.format(unsafe=site.unsafe)}"
        if site.unsafe and selects
        else found
    )


def _runs_again(site: Site) -> bool:
    """Whether it is in the backward() of a checkpoint that somebody wrote: it takes gradients by itself."""
    inside = site.function.endswith(("backward", "backward.<locals>.<listcomp>"))
    return (
        inside and re.search(r"\b(autograd\.grad|requires_grad_|enable_grad)\(", site.statement) is not None
    )


_SKIPPED_FILE = re.compile(r"skip reason: file is under skip directory \(([^)\n]+\.py)\)")


def _of_record(code: str, cause: Reason, said: str, site: Site) -> str | None:
    """What holds wherever the line is: by torch's record, and by the function of Python's that holds it."""
    if site.both_ways and code == "BS107" and re.search(r"pack_padded_sequence|pad_packed_sequence", said):
        return break_words.PACKED_BOTH_WAYS
    if (text := _matching(break_words.BY_KIND, code, said)) is not None and (
        site.theirs is None or text != break_words.NUMBERS_OF_NUMPY
    ):
        return text
    if (file := _SKIPPED_FILE.search(said)) and not is_installed(file[1]) and not is_standard(file[1]):
        return break_words.NAMESAKE.format(file=PurePath(file[1]).name, name=PurePath(file[1]).stem)
    if code == "BS120" and "Unsafe side effect" in said:
        line = site.statement if site.theirs is None else site.theirs.line
        at = site.theirs.at if site.theirs is not None else ""
        return break_words.SIDE_EFFECT.format(line=f"`{line}`{at}" if line else "A line in it")
    if code == "BS120" and (changed := re.search(r"Attribute '(\w+)' on an outer-scope object", said)):
        line = f"The line that changes the attribute `{changed[1]}`"
        return break_words.SIDE_EFFECT.format(line=line)
    if site.function in break_words.BY_FUNCTION:
        return break_words.BY_FUNCTION[site.function].format(read_at=site.read_at)
    if site.module and (of_module := _of_module(code, site)):
        return of_module
    if code == "BS127" and site.theirs is None and (tested := _of_draw(site)):
        return tested
    product = _PRODUCT.search(site.statement)
    sizes = site.seen.product or (product["sizes"] if product is not None else "")
    if sizes and code in ("BS102", "BS111") and site.theirs is None:
        return break_words.PRODUCT_OF_SIZES.format(sizes=sizes)
    of_numpy = re.search(r"\b(np|numpy)\.", site.expression) and site.theirs is None
    if code == "BS102" and site.shape in ("size", "slice") and of_numpy:
        return break_words.FROM_NUMPY
    if (
        code in ("BS101", "BS102")
        and site.theirs is None
        and re.search(r"in \w+.{0,200}\b(np|numpy)\.\w+\(", said)
    ):
        return break_words.FROM_NUMPY
    exception = exception_of(cause)
    return _raised(exception, site) if code == "BS113" and exception is not None else None


def _of_module(code: str, site: Site) -> str | None:
    """What is said of a line in a module of Python's own library."""
    if site.module == "copy" and code == "BS118" and site.read_at:
        return break_words.COPIED.format(read_at=site.read_at)
    if code == "BS107" or site.module == "beartype" or (site.theirs is None and code not in _OWN_WORDS):
        return break_words.BY_MODULE.get(site.module) or source_advice.of_python(site.module)
    return None


def _of_seen(code: str, site: Site) -> str | None:
    """What was observed of the names decides, whatever the line looks like."""
    if code in ("BS101", "BS102", "BS110", "BS111") and site.seen.arrayed is not None:
        name, line = site.seen.arrayed
        return break_words.ARRAYED.format(name=name, line=line)
    if code in ("BS101", "BS102") and site.seen.listed and not site.rewritten:
        return break_words.LISTED_ATTRIBUTE.format(name=site.seen.listed)
    if code in ("BS101", "BS102") and site.seen.numpy is not None and site.shape != "list":
        return _of_numpy(site, *site.seen.numpy)
    counts = site.shape == "loop" and site.use.taker.startswith("range(")
    if code == "BS102" and (site.shape in ("size", "slice") or counts) and site.seen.kept:
        return break_words.KEPT_NUMBER.format(kept=site.seen.kept)
    if code == "BS102" and site.shape in ("pick", "index") and site.seen.picked is not None:
        name, kind = site.seen.picked
        words = _words(site)
        where = f" {words['there']}" if site.shape == "pick" else " in the caller"
        return break_words.PICKED[kind].format(of=name, where=where, back=words["back"], read=words["read"])
    if (found := _RANGE_LISTED.search(site.expression)) is not None and code in ("BS102", "BS103"):
        return break_words.RANGE_LISTED.format(given=found["given"])
    if code == "BS116" and (of_rnn := _of_rnn(site)) is not None:
        return of_rnn
    if code == "BS102" and site.of_array and site.expression.endswith(".tolist()"):
        return break_words.LISTED_ARRAY.format(name=site.expression.removesuffix(".tolist()"))
    if code == "BS102" and (bounds := _mixed_bounds(site.expression)):
        return break_words.MIXED_BOUNDS.format(bounds=bounds)
    if code == "BS106" and site.seen.caught:
        return break_words.CAUGHT.format(line=site.seen.caught)
    if code == "BS105" and not site.on_arrays:
        return _of_cells(site) if site.shape == "written" else _of_positions(site)
    return None


# A tensor of numbers that Python has: of sizes, of how many dimensions there are, of constants.
_RANGE_LISTED = re.compile(
    r"torch\.arange\((?P<given>(len\([\w.]+\)|[\w.]+\.(shape\[-?\d+\]|ndim\b|dim\(\)|size\(-?\d+\))|[\d\s,+*/-])+)\)"
    r"(\.\w+\(\))*\.tolist\(\)"
)


def _of_rnn(site: Site) -> str | None:
    if site.seen.packed:
        return break_words.PACKED_BOTH_WAYS if site.both_ways else break_words.PACKED
    if re.search(r"\b(RNN|LSTM|GRU)(Cell)?\(", site.statement):
        return break_words.RNN_MADE
    return break_words.RNN_IN_LOOP.format(loop=site.repeated_by) if site.repeated_by else None


def _of_numpy(site: Site, name: str, kind: str) -> str:
    """What to do about a value that was numpy's: ``array``, the name of a number's type, or not known."""
    if site.seen.read:
        return break_words.READ_BY_NUMPY.format(name=name, line=site.seen.read)
    read = re.fullmatch(rf"(float|int)\({re.escape(name)}\)", site.expression)
    if kind in ("array", "") and read and site.shape == "arithmetic":
        return break_words.OF_ARRAY.format(name=name, read=read[1])
    if kind in ("array", ""):
        return break_words.FROM_NUMPY
    return break_words.NUMBER.format(name=name, kind=kind)


def _of_cells(site: Site) -> str | None:
    """What to do about a mask that says where to write, where that is by more than one index."""
    if (cells := source_advice.of_cells(site.statement, site.use.mask)) is not None:
        return cells
    several = source_advice.writes_by_several(site.statement)
    return break_words.WRITTEN_CELLS.format(**_words(site)) if several else None


def _of_library(code: str, site: Site, theirs: Theirs) -> str | None:
    if code in ("BS101", "BS102") and _DRAWN.search(site.condition or site.statement):
        return library_advice.drawn(theirs)
    also = site.use.also or site.use.tests
    return library_advice.advice(code, site.shape, theirs, site.turns, also)


def _of_source(code: str, cause: Reason, said: str, site: Site) -> str:
    """What the person's own line is for, and what it calls; else what holds for the code."""
    if (tested := _of_symbols(code, said, site) or _of_test(code, site)) is not None:
        return tested
    # Of sizes and numbers that are symbolic torch._check tells, and no assert.
    if code == "BS106" and site.asserted and "torch._check" not in said:
        less = site.asserted.endswith(checks.UNTOLD)
        constant = ", with a constant text" * site.asserted.endswith(("'", '"'))
        said_of = break_words.ASSERTED_LESS if less else break_words.ASSERTED
        return said_of.format(asserted=site.asserted, text=constant)
    by_numpy = site.of_array or re.search(r"\b(np|numpy)\.\w+\(", site.statement)
    if code == "BS105" and site.on_arrays and by_numpy:
        return break_words.ON_ARRAYS
    if code in ("BS110", "BS111") and re.match(r"range\(", site.expression):
        of_tensor = break_words.BY_SHAPE["BS102", "loop"].format(**_words(site))
        return break_words.RANGE_OF_NUMPY if site.on_arrays else of_tensor
    if site.rewritten and (words := break_words.REWRITTEN.get(_how(code, site.shape))) is not None:
        return words.format(rewritten=site.rewritten, **_words(site))
    if code == "BS102" and site.shape == "math":
        return source_advice.of_math(site.use.taker)
    if (found := _of_shape_or_call(code, said, site)) is not None:
        return found
    if site.on_arrays and code in ("BS190", "BS191", "BS110", "BS111"):
        return break_words.ON_ARRAYS
    if code == "BS103" and site.expression in [f"{name}.tolist()" for name in site.use.arguments]:
        return break_words.LISTED_BEFORE.format(**_words(site))
    # Hints name functions that have nothing to do with this break ("e.g. `print`").
    hints = cause.hints if code == "BS102" else ()
    if (text := _matching(break_words.BY_TEXT, code, "\n".join((said, *hints)))) is not None:
        return text
    if code == catalog.GENERIC and cause.hints:
        return " ".join(cause.hints[0].split())
    return catalog.entry(code).fix


def _of_shape_or_call(code: str, said: str, site: Site) -> str | None:
    """What the value is for, or what is called; of what numpy is asked that, whatever follows of it."""
    by_source = source_advice.advice(code, said, site.expression, site.statement, site.function)
    of_numpy = code in ("BS110", "BS111") and site.expression.startswith(("np.", "numpy."))
    like = "BS101" if code in _OF_VALUES and site.shape in _BY_TEST else code
    by_shape = break_words.BY_SHAPE.get((like, site.shape))
    if by_shape is None or (of_numpy and by_source is not None):
        return by_source
    return by_shape.format(**_words(site))


def _of_symbols(code: str, said: str, site: Site) -> str | None:
    """Of a test of a size that data decide, which is no tensor."""
    if code != "BS101" or "Could not guard on data-dependent expression" not in said or not site.condition:
        return None
    return break_words.GUARDED.format(test=site.condition)


def _of_positions(site: Site) -> str | None:
    """What to do about positions of which Python needs a list, and about a loop over different values."""
    if site.shape == "loop" and re.search(r"\bunique\(", site.expression):
        return break_words.OVER_VALUES.format(**_words(site))
    finds = re.search(r"\b(nonzero|argwhere|where)\(", site.expression)
    if site.shape in ("plain", "list") and finds and ".tolist()" in site.statement:
        return break_words.LISTED_POSITIONS.format(**_words(site))
    return None


def _how(code: str, shape: Shape) -> str:
    """Which of the ways to write a statement without its break a site has."""
    if code == "BS105":
        return "store" if shape == "stored" else ""
    return {"branch": "branch", "slice": "piece"}.get(shape, "tally")


def _is_count_of_numbers(use: Use) -> bool:
    """Whether a tensor of numbers is looked through, as far as its name tells: ``cls.nonzero()``.

    What is not 0 is counted, which of numbers is another thing than their sum, and no torch.where takes them.
    """
    finds = re.search(r"\b(nonzero|argwhere|where|count_nonzero)\(", use.value)
    is_plain = re.fullmatch(r"[\w.]+(\[[^\]]*\])?", use.mask) is not None
    return bool(finds) and is_plain and re.search(r"mask|keep|valid|\bis_|_is\b|bool", use.mask) is None


def _words(site: Site) -> dict[str, str]:
    """What the sentences of a shape say in the user's own names.

    ``it`` is the value or the variable that holds it, ``tensor`` what the number is read of, and ``taken``
    where it ends, after a comma.
    """
    use = site.use if not _is_count_of_numbers(site.use) else replace(site.use, mask=f"{site.use.mask} != 0")
    it = use.name or use.value
    is_own = not use.taker and not uses.READS.search(site.condition or "")
    test = (site.condition or "") if is_own else ""
    read = _tensor_read(_expression(use.value))
    tensor = "" if read is None else ast.unparse(read)
    line = f" (line {use.line}{f' of {use.file}' * bool(use.file)})" if use.line else ""
    where = f"`{use.taker}`{line}" if use.taker and use.taker != use.value else line[2:-1]
    told = f"`{tensor}`" if tensor else "the tensor"
    *first, last = [f"`{name}`" for name in use.arguments] or [""]
    names = " and ".join(filter(None, (", ".join(first), last)))
    # What is reduced is another thing than what is selected, and has no name in the source.
    is_made = not use.of and use.shape in ("reduced", "group reduced")
    whole = use.of or ("value" if is_made else "x")
    of = _grouped(whole)
    mask, unmasked = _grouped(use.mask or "mask"), _turned(use.mask or "mask")
    # What a setting makes a symbol decides no branch.
    sized = use.shape in ("size", "slice")
    asks = f" (a branch, {_lines(use.also)}, asks for it, and breaks where that does not decide it)"
    asked_too = asks if sized and use.also else ""
    made = f"as it is made of the argument{'s' * (len(use.arguments) > 1)} {names} alone"
    return {
        # Where a value that Python is to use is known first: before the compiled call, or after it.
        "test": test or "condition",
        "adds": f"; the count is a tensor then, {use.of} = {use.of} + ({test or 'condition'})"
        * bool(use.shape == "listed twice" and use.of),
        "spread": _spread(use, site.statement),
        "counts": f" (of a bincount torch.zeros(n).index_add(0, {use.of or 'index'}, {mask}.float()))"
        * ("bincount(" in use.taker),
        "made_whole": _MADE * is_made
        or f" (`{it}` made of all elements{_INDEX_OUTSIDE * (use.shape != 'across')})" * use.made,
        "grows": (
            f"; `{use.name}` has an item of each turn then: give back how many count as well, and cut it off"
            " in the caller"
            if use.gathered
            else f"; `{use.name}` grows by a turn: make it of full length first, and write at a position"
        )
        * (use.shape == "stop" and bool(use.name)),
        "done": "stopped" if re.search(r"\bdone\b", site.condition or "") else "done",
        "asks_many": f", so without {_lines(use.also)}, which only spares work" * bool(use.also),
        "unread": f"keep {told} a tensor, without the read, and " * bool(uses.READS.search(use.value)),
        "asks": f" `{test}`" * bool(test),
        "list_setting": ""
        if site.seen.loop_breaks
        else f", or set {break_words.SCALARS} (for integers by which no branch asks and no Python list is"
        " indexed)",
        "chosen": "return what the test asks for, and choose in the caller"
        + f"; or choose before the compiled call, {made}, and pass in what is chosen" * bool(use.arguments),
        "signs": " and write | for or" * _is_joined_by_or(site.statement),
        "joined": ", with | for or and & for and" * bool(re.search(r"^return\b.* (or|and) ", site.statement)),
        "tested": f"; the test (line {use.also[0]}) is {mask}.any() then" if use.also else "",
        "firsts": f", {mask}.int().argmax(-1) where the first is"
        * bool(re.search(r"\b(nonzero|where|argwhere)\(", use.value)),
        "together": f"; what takes all that is selected together (`{use.taker}`) is given {of}.masked_fill("
        f"{unmasked}, -inf) for a softmax or a maximum, torch.where({use.mask}, {use.of}, 0) for sums"
        if use.of and _TOGETHER.search(use.taker)
        else "",
        "there": f"before the compiled call, {made}" if use.arguments else "in the caller",
        # What a branch does may have to come after what the compiled function does before it.
        "by_caller": f"in the caller, which can tell, {made}" if use.arguments else "in the caller",
        "known": f"before the compiled call, {made},"
        if use.arguments
        else "in the caller, where that can tell it,",
        # Sizes of triangles are to be known, whatever is set; a branch in a loop gives up its function.
        "scalars": ""
        if re.search(r"_indices\(|\bone_hot\(", use.taker) or (site.turns and asked_too)
        else f", or set {break_words.SCALARS}, with torch._check on its bounds where the code compares it"
        + asked_too,
        "asked_too": asked_too,
        "draws": f" Random numbers ({_lines(use.also)}) are drawn at every call then, and later ones differ."
        if use.shape == "spared" and use.also
        else "",
        "wraps": f". The branch on it ({_lines(use.also)}) is a torch.where then"
        if use.also
        else ", which needs no branch where a ring wraps (% its length in the index)",
        "needed_too": f" The number is needed in {_lines(use.also)} as well."
        * bool(use.shape == "loop" and use.also),
        "by_torch": f" ({_of_torch(use.by)})" * bool(use.by),
        "symbols": f", or set {break_words.SCALARS}" * (_takes_symbols(use.taker) and not use.also),
        "as_tensors": ", torch.ones_like(x) * n" * bool(re.search(r"\b(full_like|new_full)\(", use.taker)),
        "fixed": "shift by an index that is a tensor, x.index_select(dim, (torch.arange(size) - n) % size)"
        if re.search(r"\broll\(", use.taker)
        else "compare with as many classes as are needed, (i[..., None] == torch.arange(n)).long()"
        if re.search(r"\bone_hot\(", use.taker)
        else "take a fixed size and mask what is beyond",
        "back": "" if use.arguments else f"return {told}, and ",
        "loop": where,
        "at": line,
        "whole": "; where the function does little else, do not compile it" * use.own,
        "apart": f"before the compiled call, {made}, and pass in what it gives, as a tensor where that serves"
        if use.arguments
        else "in the caller, on what the compiled part returns, and compile what follows by itself",
        "numbers": f"compute what decides before the compiled call, {made}, and pass in bools, a graph for"
        " each pattern"
        if use.arguments
        else "return the values, and go on in the caller",
        "counted": f"take {use.groups.counted}" if use.groups and use.groups.counted else "",
        "group": use.groups.of if use.groups else "group",
        "groups": use.groups.number if use.groups else "n",
        "also": f" and {_lines(use.also)}" * bool(use.also),
        "only": "" if use.returned or (use.also and use.shape == "kept") else "only ",
        "read": " (what is returned is a tensor then, to be read in the caller)" * use.returned,
        "shown": f" ({_lines(use.also)} then work{'s' * (len(use.also) == 1)} with a tensor)"
        if use.also
        else " and read that when it is shown",
        "table": it,
        "it": f"`{it}`" if it else "the number",
        "It": f"`{it}`" if it else "The number",
        "tensor": told,
        "taken": where and f", for {where}",
        "detached": "x.detach()" if read is None else f"{grouped(read, tensor)}.detach()",
        "kept": "tensor and index that" if use.value.endswith(".tolist()") else "0-d tensor",
        "mask": use.mask or "mask",
        "Mask": mask,
        "how_many": f"{mask}.sum()",
        "rows": _rows(mask, site.seen.fewer),
        # Of rows of several values a mean over all has more than the mask says.
        "by_row": f"; for rows the mask is {mask}[..., None], a None for each dimension more, and a mean over"
        " all in them is divided by their length as well" * (is_made or use.made or site.seen.fewer != 0),
        "unmasked": unmasked,
        "outside": _outside(use, of, unmasked, mask),
        "made_of": "is made of what " * use.made,
        "index_all": f"and make {use.name} of all as well" if use.made else f"and index all by that, {of}[i]",
        "least": "inf" if use.ascending else "-inf",
        "rank": "sort()" if use.ascending else "topk(k)",
        "of": whole,
        "Of": of,
        "both": f"{use.of} and {use.mask}" if use.of and use.mask else use.mask or "the mask",
        "f": "g" if use.of == "f" else "f",
        # A test that keeps the mean of nothing out is not needed then.
        "asked": f", or, where the test ({_lines(use.also)}) only keeps a mean of nothing out, by"
        " .clamp(min=1) of that and without it: 0 where the mask is empty"
        if use.also
        else "",
        "elsewhere": f"; what else takes it ({_lines(use.taken_too)}) is given all of it too, under the same"
        f" mask, and {mask}.sum() for how many there are"
        if use.taken_too
        else "",
        "beyond": f" (which serves this write alone: what else takes it, {_lines(use.taken_too)}, is as long"
        " as data say)"
        if use.taken_too
        else "",
        "besides": f"; what else the mask selects ({_lines(use.besides)}) is taken whole as well"
        if use.besides
        else "",
        "at_once": " Where no turn needs another one, do all at once, on whole tensors."
        * (site.turns or use.taker).startswith("for "),
        "listed": "s" * use.gathered,
        "them": "them" if use.gathered else "it",
        "flat": "" if site.seen.is_flat else ".flatten()",
        # What a hook returns takes the place of what its module gave.
        "return_it": "" if site.seen.is_hook else f"return {told} and read it in the caller, or ",
        "table_of_counts": "; a table of counts can be a tensor of its own, with index_add_ or"
        " torch.bincount(x, minlength=n)" * bool(re.search(r"\+=|Counter|\.get\(.*, 0\)", site.statement)),
        "in_it": where and f" in {where}",
    }


_MADE = (
    " (value is what is reduced, computed of all elements and not of the selected ones, which gives the same"
    " where each is computed by itself)"
)


_INDEX_OUTSIDE = "; where one is an index, it is 0 outside of the mask"


def _outside(use: Use, of: str, unmasked: str, mask: str) -> str:
    """What is given to what a mask does not select, before it is reduced or ranked along that dimension."""
    by = re.split(r"[.(]", use.taker.removesuffix("()"))
    if {"sum", "mean", "norm", "any"} & {*by}:
        mean = f", with {mask}.sum() as their number" * ("mean" in by)
        return f"0, {of}.masked_fill({unmasked}, 0){mean}"
    least = "inf" if use.ascending or {"min", "amin", "argmin"} & {*by} else "-inf"
    found = " (positions that come of it are those in all, and index what was not selected)"
    return f"{least}, {of}.masked_fill({unmasked}, {least}){found}"


def _of_torch(names: Sequence[str]) -> str:
    """``torch.round for round()``."""
    said = {"divmod": "// and % for divmod()", "pow": "** for pow()", "round": "torch.round for round()"}
    return " and ".join(said[name] for name in dict.fromkeys(names))


def _takes_symbols(taker: str) -> bool:
    """Whether a call of torch's takes a number that is read in the graph."""
    called = re.match(r"[\w.]+", taker)
    return called is not None and TAKES_SYMBOLS.search(called[0]) is not None


def _is_joined_by_or(test: str) -> bool:
    """Whether a test is ``a or b`` of what are no names: a flag of Python's stays with ``or``."""
    node = _expression(test)
    if not isinstance(node, ast.BoolOp) or not isinstance(node.op, ast.Or):
        return False
    return all(isinstance(part, ast.Call | ast.Compare) for part in node.values)


def _lines(numbers: Sequence[int | str]) -> str:
    """``line 7``, ``lines 7, 9``, ``line 12 of utils.py``."""
    return f"line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def _rows(mask: str, fewer: int | None) -> str:
    """How a mask is given the dimensions that it has fewer than what it selects from; None: not known."""
    if "None]" in mask or fewer == 0:
        return ""
    if fewer is None:
        return f" (for rows {mask}[..., None])"
    return f" (the mask as {mask}[..., {', '.join(['None'] * fewer)}])"


def _spread(use: Use, statement: str) -> str:
    """How a variance, a median and a quantile are taken under a mask, where it is one of these that is."""
    own = re.findall(rf"{re.escape(f'{use.of}[{use.mask}]')}\.\w+", statement) if use.of else []
    asked = " ".join((use.taker, *own))
    if re.search(r"\b(std|var)\b", asked):
        return ", or a variance as the mean of (x - mean) ** 2 under the mask"
    found = re.search(r"\b(median|quantile)\b", asked)
    if found is None:
        return ""
    return (
        f", or torch.nan{found[1]}(torch.where({use.mask or 'mask'}, {use.of or 'x'}, nan)) for a {found[1]}"
    )


def _expression(text: str) -> ast.expr | None:
    """The node of an expression; None of a statement, or of a part of a call."""
    with contextlib.suppress(SyntaxError):
        return ast.parse(text, mode="eval").body
    return None


def _mixed_bounds(expression: str) -> str:
    """``x.clamp(0, n)``, where one bound is a number and torch reads the other; else empty."""
    node = _expression(expression)
    if not isinstance(node, ast.Call) or uses.called(node) not in ("clamp", "clamp_", "clip", "clip_"):
        return ""
    given = [*node.args, *(one.value for one in node.keywords)]
    numbers = [one for one in given if isinstance(one, ast.Constant)]
    return ast.unparse(node) if 0 < len(numbers) < len(given) else ""


def _turned(mask: str) -> str:
    """What is set where a mask is not."""
    match _expression(mask):
        case ast.UnaryOp(ast.Invert(), operand):
            return ast.unparse(operand)
    return f"~{_grouped(mask)}"


def _grouped(text: str) -> str:
    """An expression as an operand."""
    node = _expression(text)
    return text if node is None else grouped(node, text)


def _tensor_read(node: ast.expr | None) -> ast.expr | None:
    """The tensor that a number is read of: ``x`` of ``x.item()``, ``float(x)`` and ``int(x.item())``."""
    match node:
        case ast.Call(ast.Name("int" | "float" | "bool"), [of]) | ast.Call(
            ast.Attribute(of, "item" | "tolist" | "numpy"), []
        ):
            return _tensor_read(of) or of
    return None


def _matching(table: tuple[tuple[tuple[str, ...], str, str], ...], code: str, said: str) -> str | None:
    """The advice of the first row that has the code, and whose pattern the text holds."""
    return next((text for codes, pattern, text in table if code in codes and re.search(pattern, said)), None)


def _of_draw(site: Site) -> str | None:
    """What to do about a number that Python or numpy draws, where what it is for says so."""
    if site.condition is not None and site.shape in ("turn", "left out"):
        return break_words.BY_SHAPE["BS127", "layerdrop"]
    if site.condition is not None and site.shape in ("stop", "loop"):
        return (
            "A random number decides how many turns run: draw it in the caller and pass it in, a graph for"
            " each number that comes; or run all turns, and weigh with 0 and 1."
        )
    if site.condition is not None:
        return _of_drawn_test(site.condition, site.turns)
    if site.shape == "random" and site.use.also and site.turns and re.search(r"[<>]", site.statement):
        return _of_drawn_test(re.sub(r"^\w+ = ", "", site.statement), site.turns)
    if _DRAWS_MANY.search(site.expression) and not _is_one_number(site):
        return source_advice.of_draws(site.expression)
    was_drawn = not re.search(r"\b(random|np|numpy)\b|seed", site.expression)  # it is needed as a number here
    if site.turns.startswith("while"):
        return break_words.DRAWN_UNTIL.format(turns=site.turns)
    if site.turns and (was_drawn or re.search(r"\brandom\.\w+\(", site.expression)):
        return break_words.DRAWS.format(turns=site.turns)
    if was_drawn:
        return (
            "Draw the number in the caller and pass it in: after the second one torch makes it symbolic, but"
            " where the code branches on it, loops over it or picks from a list with it there is a graph for"
            " each."
        )
    if site.shape == "size" or _is_one_number(site) or re.search(r"\brand(int|range)\(", site.expression):
        return "Draw the number in the caller and pass it in."
    return None


def _of_test(code: str, site: Site) -> str | None:
    """What to do about a test of one's own, where its text says what it asks for."""
    condition = site.condition
    if condition is None or code not in ("BS101", "BS102", "BS103"):
        return None
    if code == "BS103" and re.search(r"\.all\(\)$", condition):  # torch.equal, as tensors write it
        code = "BS101"
    if (
        _DRAWN.search(condition)
        and _is_drawn_alone(condition)
        and not site.seen.is_computed
        and site.shape not in ("layerdrop", "turn", "stop")
    ):
        return _of_drawn_test(condition, site.turns)
    # What an object counts, or what says when Python's own work is done; else sizes and the like.
    counted = re.match(r"\w+\.[\w.]+ % " if site.shape in _TESTS else r"[\w.]+ % ", condition)
    if code == "BS101" and counted and (site.shape in _TESTS or site.shape == "python"):
        return break_words.BY_SHAPE["BS102", "count"].format(**_words(site))
    if site.shape not in _TESTS:
        return None
    if code == "BS101" and _COUNT.search(condition):
        return break_words.COUNTED
    if code == "BS101" and site.rewritten:
        return break_words.REWRITTEN[_how(code, site.shape)].format(rewritten=site.rewritten)
    if code == "BS101" and site.seen.left_out is not None:
        of, kept = site.seen.left_out
        return break_words.LEAVES_ROWS_OUT.format(of=of, kept=kept)
    if code == "BS101" and site.seen.side is not None and site.shape in ("branch", "plain"):
        picked, of, mask, side = site.seen.side
        of_labels = re.search(r"(?<!binary_)cross_entropy|nll_loss", side)
        how = break_words.OF_LABELS if of_labels else break_words.UNDER_MASK
        return break_words.SELECTS_IN_SIDE.format(
            condition=condition,
            sides=site.sides,
            picked=picked,
            how=how.format(mask=mask, of=of, Mask=_grouped(mask), unmasked=_turned(mask)),
        )
    if code == "BS101" and site.shape != "fast path":
        drawn = _OF_PYTHON.sub("torch.rand(())", condition)
        follows = " (its numbers follow torch.manual_seed)" * (drawn != condition)
        select = f"torch.where({drawn}, {site.sides}){follows}"
        if site.shape == "told":
            return f"Select what the branch sets with {select}, and write its message in the caller."
        return (
            f"Compute both sides and select with {select}, or use torch.cond if a side is costly; where a"
            " side is no tensor of the other's shape, or does more, test it in the caller."
        )
    return None


def _is_one_number(site: Site) -> bool:
    """Whether Python makes one number of what is drawn: ``int(rng.integers(-2, 3))``."""
    return re.search(rf"\b(int|float|bool)\({re.escape(site.expression)}\)", site.statement) is not None


_OF_PYTHON = re.compile(
    r"\b(np\.|numpy\.)?random\.(random|rand|uniform)\((0(\.0)?, 1(\.0)?)?\)|(?<![\w.])random\(\)"
)


def _of_drawn_test(condition: str, turns: str) -> str:
    """What to do about a test of a random number: what a graph draws follows torch's own state."""
    drawn = re.sub(r"\.item\(\)|,? ?\bgenerator=[\w.]+", "", _OF_PYTHON.sub("torch.rand(())", condition))
    drawn = re.sub(rf"\bmath\.({'|'.join(source_advice.OF_MATH)})\(", r"torch.\1(", drawn)
    if not _DRAWN.search(drawn) or re.search(r"\b(math|random|np|numpy)\.", drawn):
        drawn = "torch.rand(()) < p"
    other = "" if drawn == condition.replace(".item()", "") else ", whose numbers follow torch.manual_seed"
    words = break_words.DRAW_EACH_TURN if turns else break_words.DRAW
    return words.format(drawn=drawn, other=other)


def _is_drawn_alone(condition: str) -> bool:
    """Whether a random number is held against a plain name or number, which the caller can do as well."""
    test = ast.parse(condition, mode="eval").body
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    return not isinstance(test, ast.BinOp) and all(
        _DRAWN.search(ast.unparse(side)) or not isinstance(side, ast.Call | ast.BinOp) for side in sides
    )


def _raised(exception: str, site: Site) -> str:
    if site.raises and site.theirs is not None:
        return (
            f"{site.theirs.package} raises {exception.rstrip('. ')}. That is said of the"
            f" call{site.theirs.at}: make it as the text asks."
        )
    if ".saved_variables" in site.expression:
        return break_words.SAVED_VARIABLES
    return (
        f"{exception} is raised here while Dynamo traces, and it leaves the compiled function. Check the"
        " condition before the compiled part; or, where eager does not raise it, give the argument that the"
        " line misses while it is traced, or put torch.compiler.disable on its function."
    )


def exception_of(cause: Reason) -> str | None:
    """``TypeError: 'NoneType' object is not subscriptable``, of an exception that Dynamo saw raised."""
    found = _EXCEPTION.search(cause.context or "") or _IN_FAKE_CALL.search(cause.context or "")
    if found is None:
        return None
    text = found["text"]
    with contextlib.suppress(ValueError, SyntaxError):
        text = str(ast.literal_eval(found["text"]))
    return f"{found['type']}: {' '.join(text.split())}" if text else found["type"]
