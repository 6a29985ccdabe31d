"""The agent of a scan: hooks in Dynamo, the clock, and the events that they write."""
