"""Proven radii: closed forms, relaxations and branch and bound for PolyReLUNets."""

from polyrelu.robust.certify.branch_and_bound import Budget, certify
from polyrelu.robust.certify.closed_form import average_radius, centre_radius
from polyrelu.robust.certify.krylov import least_radius, quick_radius
from polyrelu.robust.certify.linear import certified_radius, linear_radius
from polyrelu.robust.certify.lipschitz import Cheap, cheap_radius
from polyrelu.robust.certify.quadratic import quadratic_radius

__all__ = [
    "Budget",
    "Cheap",
    "average_radius",
    "centre_radius",
    "certified_radius",
    "certify",
    "cheap_radius",
    "least_radius",
    "linear_radius",
    "quadratic_radius",
    "quick_radius",
]
