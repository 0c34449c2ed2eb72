"""Six settings to begin with (words.js has the sentences that go with them)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, final

from polyrelu.explorer.parameters import Setting


@final
@dataclass(frozen=True)
class Preset:
    """A setting under a name; ``pgd`` is the radius of the published attack (0: none)."""

    id: str
    name: str
    setting: Setting
    pgd: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain values by name."""
        return asdict(self)


PRESETS = (
    Preset("averages", "ReLU averages", Setting(p=1)),
    Preset("decouples", "polynomial ReLU decouples", Setting(p=3)),
    Preset("large", "large initialisation", Setting(p=3, log10_scale=-0.3, start="gaussian")),
    Preset("fooled", "why PGD is fooled", Setting(p=3), pgd=0.85),
    Preset("fine", "fine labels", Setting(p=1, labels="fine")),
    Preset("digits", "a ReLU head on digits", Setting(p=1, data="digits", log10_scale=-3)),
)
