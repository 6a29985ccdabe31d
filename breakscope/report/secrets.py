"""What looks like a secret, and is masked wherever a report, or what is made of it, would hold it.

The shapes are those that the issuers of keys document (AWS, GitHub, GitLab, Google, Hugging Face, npm,
OpenAI, PyPI, Slack, Stripe, SendGrid, Telegram), of RFC 6750 and RFC 7519 (bearer tokens, JWT), RFC 7468
(PEM) and RFC 3986 (passwords in URLs). What has no shape of its own is known by the name that it is given to.

A mask has the length of what it hides, so that columns stay what they are.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeVar

MASK = "*"
NOTE = "what looks like a secret is masked with asterisks, in arguments, values and source lines"
_SHOWN_MASK = MASK * 4

_END = r"(?![A-Za-z0-9])"
_NOT_BEFORE = r"(?<![A-Za-z0-9])"
# What such a text must hold, and the part of it that is hidden: group "s" of each.
_SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("AKIA", "ASIA", "AROA", "AIDA"), rf"{_NOT_BEFORE}(?P<s>(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{{16}}){_END}"),
    (("gh",), rf"{_NOT_BEFORE}(?P<s>gh[pousr]_[A-Za-z0-9]{{30,}}){_END}"),
    (("github_pat_",), r"(?P<s>github_pat_\w{22,})"),
    (("glpat-",), r"(?P<s>glpat-[\w-]{20,})"),
    (("hf_",), rf"{_NOT_BEFORE}(?P<s>hf_[A-Za-z0-9]{{20,}}){_END}"),
    (("sk-",), rf"{_NOT_BEFORE}(?P<s>sk-[\w-]{{16,}})"),
    (("xox",), rf"{_NOT_BEFORE}(?P<s>xox[abeoprs]-[\w-]{{10,}})"),
    (("hooks.slack.com",), r"hooks\.slack\.com/services/(?P<s>[\w/]{20,})"),
    (("AIza",), rf"{_NOT_BEFORE}(?P<s>AIza[\w-]{{35}})"),
    (("ya29.",), rf"{_NOT_BEFORE}(?P<s>ya29\.[\w-]{{20,}})"),
    (("k_live_", "k_test_"), rf"{_NOT_BEFORE}(?P<s>[spr]k_(?:live|test)_\w{{10,}})"),
    (("SG.",), rf"{_NOT_BEFORE}(?P<s>SG\.[\w-]{{16,}}\.[\w-]{{16,}})"),
    (("npm_",), rf"{_NOT_BEFORE}(?P<s>npm_[A-Za-z0-9]{{30,}}){_END}"),
    (("pypi-",), rf"{_NOT_BEFORE}(?P<s>pypi-[\w-]{{50,}})"),
    ((":AA",), r"(?<![0-9])(?P<s>[0-9]{8,10}:AA[\w-]{30,})"),
    (("eyJ",), rf"{_NOT_BEFORE}(?P<s>eyJ[\w-]{{6,}}\.[\w-]{{6,}}\.[\w-]*)"),
    (("earer ", "asic "), r"\b(?i:bearer|basic)\s+(?P<s>[\w.~+/-]{12,}=*)"),
    (("://",), r"\w://[^\s/@:'\"]*:(?P<s>[^\s/@'\"]+)@"),
    (
        ("AccountKey=", "SharedAccessKey=", "sig="),
        r"(?:AccountKey|SharedAccessKey|\bsig)=(?P<s>[\w%+/-]{16,}=*)",
    ),
    (
        ("PRIVATE KEY",),
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<s>(?s:.*?))(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    ),
)
# A literal that is given to, or compared with, a name that says what it is.
_NAMES = (
    r"(?:api|access|auth|secret|private|encryption|account|signing)[_-]?key|passw(?:or)?d|passphrase|credentials?"
    r"|secret|(?:api|access|auth|bearer|refresh|secret|hf|github|session|id|user)[_-]?token|wandb[_-]?key"
)
_LITERAL = r"b?(?P<q>['\"])(?P<s>(?:(?!(?P=q))[^\\\n]|\\.){4,}?)(?P=q)"
_NAMED = re.compile(rf"(?i:(?:{_NAMES})\w{{0,12}})['\"]?\]?\s*(?::\s*str\s*)?(?:=|==|:|!=)\s*{_LITERAL}")
_NAMED_WORDS = ("key", "passw", "passphrase", "credential", "secret", "token")
_COMPILED = tuple((words, re.compile(pattern)) for words, pattern in _SHAPES)

# Options of a command line, by the last word of their name, and by the one before where that says too little.
_SECRET_OPTIONS = frozenset(
    (
        "token",
        "secret",
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "apikey",
        "credential",
        "credentials",
        "auth",
    )
)
_BEFORE_KEY = frozenset(("api", "access", "secret", "private", "auth", "encryption", "wandb", "account"))
_MODEL_TOKENS = frozenset(  # "--pad-token"
    (
        "pad",
        "bos",
        "eos",
        "unk",
        "sep",
        "cls",
        "mask",
        "stop",
        "special",
        "image",
        "end",
        "start",
        "per",
        "max",
        "num",
    )
)
_PLAIN = re.compile(r"[+-]?[0-9.,e-]*|true|false|none|auto", re.IGNORECASE)

_Record = TypeVar("_Record")


def mask(text: str) -> str:
    """A text in which what looks like a secret is hidden; the same one where nothing does."""
    for words, pattern in _COMPILED:
        if any(word in text for word in words):
            text = pattern.sub(_hide, text)
    lower = text.lower()
    if any(word in lower for word in _NAMED_WORDS):
        text = _NAMED.sub(_hide, text)
    return text


def mask_words(words: Iterable[str]) -> tuple[str, ...]:
    """The words of a command line without ``--api-key=X``, ``--token X``, and what :func:`mask` finds."""
    masked: list[str] = []
    option = ""
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("-") and equals and _is_secret_option(name) and not _PLAIN.fullmatch(value):
            masked.append(f"{name}={_stars(value)}")
        elif option and not word.startswith("-") and not _PLAIN.fullmatch(word):
            masked.append(_stars(word))
        else:
            masked.append(mask(word))
        option = name if word.startswith("-") and not equals and _is_secret_option(name) else ""
    return tuple(masked)


def is_masked(text: str) -> bool:
    """Whether a part of a text was hidden: what it was cannot be told from it."""
    return _SHOWN_MASK in text


def masked(record: _Record) -> _Record:
    """A frozen record, such as a report, with every text masked; the same one where nothing is hidden."""
    return _masked(record)  # type: ignore[no-any-return]


# The findings of a report say the same in many places.
_mask_again = lru_cache(maxsize=4096)(mask)


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        hidden = _mask_again(value) if len(value) < 1000 else mask(value)
        return value if hidden == value else hidden
    if isinstance(value, tuple | list):
        items = [_masked(item) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if isinstance(value, dict):
        fields = {key: _masked(item) for key, item in value.items()}
        return value if all(fields[key] is value[key] for key in value) else fields
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for field in dataclasses.fields(value):
            old = getattr(value, field.name)
            new = _masked(old)
            if new is not old:
                changed[field.name] = new
        return dataclasses.replace(value, **changed) if changed else value
    return value


def _is_secret_option(name: str) -> bool:
    *before, last = re.split(r"[-_.]", name.lstrip("-").lower())
    previous = before[-1] if before else ""
    if last == "key":
        return previous in _BEFORE_KEY
    return last in _SECRET_OPTIONS and not (last == "token" and previous in _MODEL_TOKENS)


def _hide(match: re.Match[str]) -> str:
    start, end = match.span("s")
    whole = match.group(0)
    return whole[: start - match.start()] + _stars(match["s"]) + whole[end - match.start() :]


def _stars(text: str) -> str:
    # Lines stay lines, and a short secret gets a mask that is seen to be one.
    return "\n".join(MASK * (len(line) if "\n" in text else max(len(line), 4)) for line in text.split("\n"))
