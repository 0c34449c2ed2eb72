"""Self-contained HTML pages: all claims, one diagnosis. Nothing is fetched."""
