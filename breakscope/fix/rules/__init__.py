"""One rule a file. A file added here is a rule: :func:`breakscope.fix.rule.all_rules` finds it."""
