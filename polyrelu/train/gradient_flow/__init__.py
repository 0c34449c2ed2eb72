"""Gradient flow: in polar coordinates for a PolyReLUNet, by Runge-Kutta-Chebyshev steps for any other module."""

from polyrelu.train.gradient_flow.flow import flow
from polyrelu.train.gradient_flow.polar_field import Field, PolarState
from polyrelu.train.gradient_flow.surrogate_steps import stratified

__all__ = ["Field", "PolarState", "flow", "stratified"]
