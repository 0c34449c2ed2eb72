"""Proven radii: closed forms, relaxations and branch and bound for PolyReLUNets."""

from polyrelu.robust.certify.branch_and_bound import certify
from polyrelu.robust.certify.closed_form import average_radius, centre_radius
from polyrelu.robust.certify.contract import Budget, Certificate, Scope, Tier
from polyrelu.robust.certify.krylov import krylov_radius, krylov_radius_against
from polyrelu.robust.certify.linear import linear_radius
from polyrelu.robust.certify.lipschitz import LipschitzConstants, root_lipschitz_radius
from polyrelu.robust.certify.quadratic import quadratic_radius
from polyrelu.robust.certify.table import CERTIFICATES, applicable, certified_radius

__all__ = [
    "CERTIFICATES",
    "Budget",
    "Certificate",
    "LipschitzConstants",
    "Scope",
    "Tier",
    "applicable",
    "average_radius",
    "centre_radius",
    "certified_radius",
    "certify",
    "krylov_radius",
    "krylov_radius_against",
    "linear_radius",
    "quadratic_radius",
    "root_lipschitz_radius",
]
