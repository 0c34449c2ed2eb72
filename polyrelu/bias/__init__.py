"""What was learned: measurements on a net, a data set or a Trajectory, one subject a file (docs/ARCHITECTURE.md)."""
