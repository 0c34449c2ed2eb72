"""Trained nets, data and sizes that the experiments of several papers share."""
