"""What attacks and certificates share: margins, norms, points to look at, arithmetic, the reduced net, results."""
