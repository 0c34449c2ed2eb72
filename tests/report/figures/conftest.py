"""What is asked of every figure: is it drawn, what does it say, do its texts overlap, is anything cut off."""

import io

import numpy as np
import pytest
from PIL import Image


def _render(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    with Image.open(buffer) as image:
        assert len(image.convert("L").getcolors()) > 20  # drawn, not blank
    return figure


@pytest.fixture(scope="session")
def render():
    return _render


def _words(figure):
    found = [*figure.texts, *(text for axes in figure.axes for text in (*axes.texts, axes.title, axes._left_title))]
    legends = [*figure.legends, *(axes.legend_ for axes in figure.axes if axes.legend_)]
    return " | ".join(text.get_text() for text in [*found, *(t for legend in legends for t in legend.get_texts())])


@pytest.fixture(scope="session")
def words():
    return _words


def _apart(texts):
    """No two of the shown texts overlap."""
    boxes = [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]
    return not any(a.overlaps(b) for number, a in enumerate(boxes) for b in boxes[:number])


@pytest.fixture(scope="session")
def apart():
    return _apart


def _inside(figure):
    """Nothing is cut off at the edge of the paper."""
    tight, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
    return tight.x0 >= 0 and tight.y0 >= 0 and tight.x1 <= wide and tight.y1 <= high


@pytest.fixture(scope="session")
def inside():
    return _inside


def _images(figure):
    return [np.ma.filled(panel.images[0].get_array(), np.nan) for panel in figure.axes if panel.images]


@pytest.fixture(scope="session")
def images():
    return _images
