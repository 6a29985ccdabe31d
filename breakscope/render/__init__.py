"""One module per format, each with a pure ``render(report, ...) -> str``."""
