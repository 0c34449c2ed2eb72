"""The scikit-learn interface: a robust head for any embedding, its training, and the report on any classifier."""
