"""A search for points where rounding changes a decision inside a proven radius (after arXiv 2205.10159).

    flip:  predict(x') != predict(x)  with  |x' - x| < lower,  the length exact for the stored numbers x and x'

Proofs speak of real numbers, `predict` adds floating ones: at a distance just below the radius the margin is next to
nothing and its rounding decides. The search goes there and looks through neighbouring floats.
"""
