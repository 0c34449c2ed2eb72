"""Min, Mallada & Vidal, ICLR 2024: from small starts neurons of ReLU nets turn first and grow later."""

ALIGNED, FALLEN = 2000, 3000  # iterations, read off Fig. 5 (MNIST)
