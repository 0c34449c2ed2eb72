"""The end of training: gradient flow in loss time by steps that are implicit in the margins."""
