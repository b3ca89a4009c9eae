"""What `weft run` does: get a lease (from a server or an embedded one), run the program on it, report. Design note: docs/design/server.md."""
