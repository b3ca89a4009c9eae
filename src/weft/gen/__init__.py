"""Generated modules; see docs/design/codegen.md."""
