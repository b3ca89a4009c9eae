"""Errors, units, ids, settings, log: what every other band may use. No I/O beyond reading a settings file."""
