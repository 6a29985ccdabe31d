"""What of a record of Dynamo's is kept: all that is read from it."""

from __future__ import annotations

from dataclasses import replace

from breakscope.diagnose import records

FRAMES = '  File "/job/train.py", line 9, in <module>\n    step(x)\n  File "/job/model.py", line 4, in step\n    print(x)\n'
REASON = "Failed to trace builtin operator\n  Explanation: of `print`\n  Hint: Do not.\n\n  Developer debug context: print\n"
DYNAMOS_OWN = (
    'Traceback (most recent call last):\n  File "/torch/_dynamo/exc.py", line 7, in raise_\n    raise Unsupported\n'
    "torch._dynamo.exc.Unsupported: Failed to trace builtin operator\n" * 20
)
RESUMED = f"Graph break in user code at /job/model.py:4\nGraph Break Reason: {REASON}\nUser code traceback:\n{FRAMES}"


def test_dynamos_own_traceback_is_left_out_and_nothing_that_is_read() -> None:
    whole = f"{RESUMED}\n{DYNAMOS_OWN}"
    kept = records.without_traceback(whole)
    assert len(kept) < len(whole) / 4
    assert records.parse_break(kept) == replace(records.parse_break(whole), text=kept)
    assert records.parse_break(kept).frames[-1].line == 4


def test_a_traceback_that_holds_the_reason_stays() -> None:
    skipped = f"Graph break: skip: from user code at:\n{FRAMES}\n{DYNAMOS_OWN}"
    assert records.without_traceback(skipped) == skipped
    assert records.parse_break(skipped).reasons


def test_names_that_dynamo_makes_are_those_of_the_function() -> None:
    made = "torch_dynamo_resume_in___comprehension_forward_at_20_2_at_20"
    assert {records.unresumed(name) for name in (made, "__comprehension_forward_at_20_2", "forward")} == {
        "forward"
    }
    assert records.unresumed("__comprehension") == "__comprehension"


def test_the_whole_call_path_of_an_error_is_read() -> None:
    """Torch puts one blank before the first line of it."""
    payload = f"torch._dynamo.exc.TorchRuntimeError: no\n\nfrom user code:\n {FRAMES}"
    assert [(one.line, one.name) for one in records.parse_error_frames(payload)] == [
        (9, "<module>"),
        (4, "step"),
    ]
