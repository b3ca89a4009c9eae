"""The command line: one file per verb or noun. Prints, asks for nothing, and turns errors into one line and an exit status."""
