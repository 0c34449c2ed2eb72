"""Where the sources contradict each other or themselves: both readings computed."""
