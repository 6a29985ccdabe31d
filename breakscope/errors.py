"""Errors that breakscope shows to its users.

Every error is one sentence that says what was wrong and what to do; the command line prints it
after ``breakscope: `` and exits with the error's ``exit_code``. ``slug`` names the error for people
who search for it and for tests.
"""


class BreakscopeError(Exception):
    """Base of every error that a user may see.

    Attributes:
        exit_code: what the process exits with when the error ends it.
        slug: stable short name of the kind of error.
    """

    exit_code: int = 4
    slug: str = "internal"


class InternalError(BreakscopeError):
    """Something of breakscope's own failed in a way that it cannot work around."""


class UsageError(BreakscopeError):
    """The command line or the configuration is wrong."""

    exit_code = 2
    slug = "usage"


class ConfigError(UsageError):
    """The configuration file cannot be read, or says what cannot be."""

    slug = "config"


class BaselineError(UsageError):
    """A baseline file cannot be read: missing, truncated, not ours, of a newer version or another project."""

    slug = "baseline"


class ScriptNotFoundError(UsageError):
    """The script or module to run does not exist or cannot be read."""

    slug = "script-not-found"


class TargetError(UsageError):
    """``--compile FUNCTION`` named something that does not exist or was never called."""

    slug = "target"


class TorchMissingError(UsageError):
    """The interpreter that would run the script has no torch, or one that is too old."""

    slug = "torch"


class LaunchError(UsageError):
    """torchrun started no rank: its own output says why."""

    slug = "launch"


class OutputError(UsageError):
    """A file that the user asked for cannot be written."""

    slug = "output"


class ReportError(UsageError):
    """A report file cannot be read: missing, truncated, too large, not ours, or too new."""

    slug = "report"


class UnknownCodeError(UsageError):
    """``breakscope explain`` was asked for a code that nobody has."""

    slug = "unknown-code"


class ArtifactError(UsageError):
    """An artifact that a report lists cannot be shown: it was not kept, is missing or damaged."""

    slug = "artifact"


class TraceError(UsageError):
    """A trace or log cannot be imported: missing, unreadable, empty, or no trace."""

    slug = "trace"


class ScriptTooShortError(BreakscopeError):
    """A benchmark's script makes too few steps for a verdict; says how many are needed."""

    exit_code = 3
    slug = "too-short"
