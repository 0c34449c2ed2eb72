"""Gradient flow: in polar coordinates for a PolyReLUNet, by Runge-Kutta-Chebyshev steps for any other module."""

from polyrelu.train.gradient_flow.flow import flow
from polyrelu.train.gradient_flow.polar_field import Field
from polyrelu.train.gradient_flow.polar_state import PolarState

__all__ = ["Field", "PolarState", "flow"]
