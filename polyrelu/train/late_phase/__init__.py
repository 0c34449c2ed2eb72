"""The end of training: gradient flow in loss time by steps that are implicit in the margins."""

from polyrelu.train.late_phase.implicit_step import Gates, end_forces, gate_planes, gram_with_gates
from polyrelu.train.late_phase.late_flow import late_flow

__all__ = ["Gates", "end_forces", "gate_planes", "gram_with_gates", "late_flow"]
