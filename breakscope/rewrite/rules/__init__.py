"""One rule a file. A file added here is a rule: :func:`breakscope.rewrite.rule.all_rules` finds it."""
