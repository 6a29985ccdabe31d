"""The words and figures that all formats share."""
