"""What `weft run` does: get a lease, run the program on it, report. Design note: docs/design/server.md."""
