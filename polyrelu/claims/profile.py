"""The two sizes at which everything is measured: small ("quick") and as published ("paper")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar

Profile = Literal["quick", "paper"]
PROFILES: tuple[Profile, ...] = ("quick", "paper")
T = TypeVar("T")


def for_profile(choice: T | Mapping[Profile, T], profile: Profile) -> T:
    """The one for this profile; what is no mapping by profile is for both."""
    return choice[profile] if isinstance(choice, Mapping) else choice


def filled(
    sentence: str, sizes: Mapping[Profile, NamedTuple] | None = None, **tables: Mapping[Profile, Any]
) -> dict[Profile, str]:
    """``sentence`` for each profile, names in braces being those of its sizes and tables: "D={dim}" becomes "D=100"."""
    return {
        profile: sentence.format_map(
            {name: _text(value) for name, value in (sizes[profile]._asdict() if sizes else {}).items()}
            | {name: _text(table[profile]) for name, table in tables.items()}
        )
        for profile in PROFILES
    }


def _text(value: Any) -> Any:
    """Numbers of a list separated by commas."""
    if isinstance(value, tuple):
        return ", ".join(str(_text(one)) for one in value)
    return f"{value:g}" if isinstance(value, float) else value
