"""Image sets fetched once, folders of images, and their embeddings."""
