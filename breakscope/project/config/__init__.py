"""What a project says about breakscope: ``[tool.breakscope]`` in pyproject.toml, or breakscope.toml.

The file is looked for from the current folder up to that of the repository; the first one holds. A key that
is not known is an error.
"""

from breakscope.project.config.load import load
from breakscope.project.config.model import Budgets, Config, Lint, Target
from breakscope.project.config.values import check_codes

__all__ = ["Budgets", "Config", "Lint", "Target", "check_codes", "load"]
