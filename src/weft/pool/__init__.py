"""The GPU server and its client: inventory, leases, executors, the control protocol. Design note: docs/design/server.md."""
