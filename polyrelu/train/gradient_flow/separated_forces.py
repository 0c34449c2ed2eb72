"""The implicit step of separated_step.py: the weights of the constraints at its end and, for p = 1, the gate forces.

    p = softmax(-(q + K p))                                 minimises   log sum exp(-c) + u K u / 2,  c = q + K u

A ReLU neuron with d = <e_k, v_j> < 0 harms constraint k while its gate is open, is pushed to t = <x_k, w_j> = 0 and
slides along it: neither gate, open or shut, is right there. So the forces s of such pairs are unknowns beside p,

    c_k = q_k - sum_j a_kj relu(t_kj),  a = |d|,     s_kj = p_k a_kj relu'(t_kj) in [0, p_k a_kj],     u = (p, -s),

q without those pairs, t and q moved by K u, K = dt times the Gram matrix of the gradients of q and t. The problem stays
convex; relu is rounded over a width that shrinks to 1e-4 |w_j||x_k|, and Newton's method does the rest.
"""

from __future__ import annotations

import torch
from torch import Tensor

from polyrelu.train.margin_gradients import Gates

KINK_WIDTHS = (1e-2, 1e-3, 1e-4)  # over which the kink of relu is rounded, in turn, in units of |w||x|


def end_forces(q: Tensor, K: Tensor, start: Tensor, gates: Gates | None = None) -> tuple[Tensor, Tensor]:
    """p (m,) and s (g,) at the end of a step (module docstring); ``start``: weights to begin with."""
    if gates is None:
        none = torch.zeros(0, dtype=torch.long)
        gates = Gates(none, none, q[:0], q[:0], q[:0])
    u = torch.cat([start, -start[gates.row] * gates.height * (gates.at > 0)])
    first = torch.cat([q + torch.zeros_like(q).index_add(0, gates.row, gates.height * gates.at.clamp(min=0)), gates.at])
    for width in KINK_WIDTHS if len(gates.row) else KINK_WIDTHS[-1:]:
        u, force = _newton(first, K, u, gates, width * gates.width)
    return force[: len(q)], -force[len(q) :]


def _newton(first: Tensor, K: Tensor, u: Tensor, gates: Gates, width: Tensor) -> tuple[Tensor, Tensor]:
    m, Ku = len(first) - len(width), K @ u
    value = _level(first + Ku, u, Ku, gates, width)
    for _ in range(100):
        here = first + Ku
        t = here[m:]
        p = torch.softmax(-_margins(here, gates, width), dim=0)
        gate = (t / width).clamp(0, 1)
        open_force = p[gates.row] * gates.height
        force = torch.cat([p, -open_force * gate])
        away = force - u
        on = ((force.abs() > 1e-12) | (u.abs() > 1e-12) | torch.cat([p < 0, open_force > 1e-12])).nonzero()[:, 0]
        inner = K[on][:, on]
        if len(width):  # A = I + H K, H the second derivative of log sum exp(-c)
            M = torch.zeros(m, len(here), dtype=K.dtype)
            M.diagonal().fill_(1.0)
            M[gates.row, torch.arange(m, len(here))] = -gates.height * gate
            M = M[:, on]
            bend = torch.cat([torch.zeros_like(p), torch.where((t > 0) & (t < width), open_force / width, 0.0)])[on]
            A = ((p[:, None] * M).T @ M - torch.outer(p @ M, p @ M) + torch.diag(bend)) @ inner
        else:
            A = p[on][:, None] * (inner - p[on] @ inner)
        A.diagonal().add_(1.0)
        way = torch.zeros_like(u)
        way[on] = torch.linalg.solve(A, away[on])
        K_way, slope, length = K @ way, float((K @ away) @ way), 1.0
        while True:
            new = _level(here + length * K_way, u + length * way, Ku + length * K_way, gates, width)
            if new <= value - 1e-4 * length * slope + 1e-13 * abs(value) or length < 1e-9:
                break
            length /= 2
        won, tiny = value - new, 1e-12 * max(1.0, abs(value))
        u, Ku, value = u + length * way, Ku + length * K_way, new
        if min(abs(slope), won) <= tiny or float(way.abs().max()) * length <= 1e-10:
            break
    here = first + Ku
    p = torch.softmax(-_margins(here, gates, width), dim=0)
    return u, torch.cat([p, -p[gates.row] * gates.height * (here[m:] / width).clamp(0, 1)])


def _margins(here: Tensor, gates: Gates, width: Tensor) -> Tensor:
    """c: the margins less what the pairs take from them, relu rounded over ``width``."""
    m, t = len(here) - len(width), here[len(here) - len(width) :]
    on = t.clamp(min=0)
    relu = torch.where(t < width, on * on / (2 * width), t - width / 2)
    return here[:m] - torch.zeros_like(here[:m]).index_add(0, gates.row, gates.height * relu)


def _level(here: Tensor, u: Tensor, Ku: Tensor, gates: Gates, width: Tensor) -> float:
    return float((-_margins(here, gates, width)).logsumexp(0) + u @ Ku / 2)
