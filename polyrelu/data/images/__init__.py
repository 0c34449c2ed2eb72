"""Image sets by name, their download, and embeddings of folders of images."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from polyrelu.data.images.downloads import DOWNLOADS, cache_folder, cached, fetch, load_images
from polyrelu.data.images.image_sets import IMAGE_SETS, read_image_set

if TYPE_CHECKING:
    from polyrelu.data.images.embeddings import EmbeddingResult, embed_images
    from polyrelu.data.images.image_folder import ImageFolder, list_images, load_image

# These need PIL, which takes as long to import as all of polyrelu.data: their modules are imported when first used.
_LAZY = {
    "EmbeddingResult": "embeddings",
    "ImageFolder": "image_folder",
    "embed_images": "embeddings",
    "list_images": "image_folder",
    "load_image": "image_folder",
}

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


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"polyrelu.data.images.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
