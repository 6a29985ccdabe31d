"""From events to a report: pure functions, no torch."""
