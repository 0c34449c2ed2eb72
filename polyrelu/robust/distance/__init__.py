"""dist(f, F) = inf_{c>0} sup_{|x|=1} |c f(x) - F(x)|, and the search for the largest difference on the sphere."""

from polyrelu.robust.distance.distance import Distance, DistanceStatus, dist, neuron_sum_of, published_c, published_dist
from polyrelu.robust.distance.sphere_ascent import NeuronSum, common_span

__all__ = [
    "Distance",
    "DistanceStatus",
    "NeuronSum",
    "common_span",
    "dist",
    "neuron_sum_of",
    "published_c",
    "published_dist",
]
