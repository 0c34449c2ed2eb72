"""Training a head on anybody's rows: settings, data, first weights, epochs, rows that come in portions."""
