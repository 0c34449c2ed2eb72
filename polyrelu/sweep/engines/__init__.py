"""Where the settings of a sweep run: worker processes on this machine, or a Ray cluster."""
