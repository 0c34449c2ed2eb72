"""Image sets by name, their download, and embeddings of folders of images."""

from polyrelu.data.images.downloads import DOWNLOADS, cache_folder, cached, fetch, load_images
from polyrelu.data.images.embeddings import EmbeddingResult, embed_images
from polyrelu.data.images.image_folder import ImageFolder, list_images, load_image
from polyrelu.data.images.image_sets import IMAGE_SETS, read_image_set

__all__ = [
    "DOWNLOADS",
    "IMAGE_SETS",
    "EmbeddingResult",
    "ImageFolder",
    "cache_folder",
    "cached",
    "embed_images",
    "fetch",
    "list_images",
    "load_image",
    "load_images",
    "read_image_set",
]
