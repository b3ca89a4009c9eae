"""Writes the generated files of Weft from the facts in spec/. Standard library only. Design note: docs/design/codegen.md."""
