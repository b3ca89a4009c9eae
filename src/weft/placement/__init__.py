"""Decisions about who gets what, as pure functions: no I/O, no clock, no dice."""
