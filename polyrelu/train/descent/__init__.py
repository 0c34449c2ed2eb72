"""Gradient descent as the papers ran it: updates, batches, gradients, published recipes."""
