"""Which neurons make the network, and what most of them do: measured in ``polyrelu.bias.alignment``."""

from polyrelu.bias.alignment import carrying, weighted_quantiles

__all__ = ["carrying", "weighted_quantiles"]
