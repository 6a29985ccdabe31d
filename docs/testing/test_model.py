"""The same with the fixture."""

from model import Model, example_inputs


def test_model_compiles_without_breaks(breakscope):
    breakscope.assert_clean(Model().eval(), example_inputs(), allow=["BS104"])
