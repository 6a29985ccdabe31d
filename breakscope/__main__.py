"""``python -m breakscope``."""

from breakscope.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
