"""Examples of the rules, one file for each rule: shown in the documentation, executed by the tests."""
