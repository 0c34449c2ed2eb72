"""Gradient flow: the polar integrator of PolyReLUNets, and the Runge-Kutta-Chebyshev flow of any other module."""
