"""One file for each command: parse, call, show. Heavy imports wait inside, so that --help is instant."""
