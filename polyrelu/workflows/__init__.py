"""One run of the command line: its settings (no heavy import), its folder, its live progress."""
