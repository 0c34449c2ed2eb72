r"""Classes read out from sub-classes, g_c = max_{s in c} f_s: proven by one sub-class of the point's own class.

Where f_s > f_t for one s of class c and every t of other classes, c is read out. So a radius of sub-class s against the
sub-classes of other classes is one of its class: of the sub-class that wins at the point, or of any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from polyrelu.nets import ReadOut
from polyrelu.robust.certify.contract import Certificate, Job, Scope


@final
@dataclass(frozen=True)
class SubClasses(Certificate):
    """``certificate`` of one sub-class of the point's class against the sub-classes of all other classes."""

    certificate: Certificate

    @property
    def scope(self) -> Scope:
        """That of ``certificate``, tier included, for read-outs; the rivals are the sub-classes of other classes."""
        return replace(self.certificate.scope, nets=(ReadOut,), takes_rivals=False)

    def takes_power(self, p: float) -> bool:
        """If ``certificate`` does."""
        return self.certificate.takes_power(p)

    def radius(self, job: Job) -> Tensor:
        """Of ``job.own``, or of the sub-classes that win at the points."""
        net = job.net
        assert isinstance(net, ReadOut)
        own = winners(net, job.X, job.y) if job.own is None else job.own
        inner = replace(job, own=None, reduced=None)
        if self.certificate.scope.takes_rivals:
            return self.certificate.radius(replace(inner, net=net.net, y=own, rivals=net.class_of != job.y[:, None]))
        radius = torch.zeros(len(job), dtype=torch.float64, device=job.X.device)
        for one in torch.unique(own).tolist():
            here = (own == one).nonzero()[:, 0]
            alone = replace(inner.at(here), net=net.against(one), y=torch.zeros_like(here))
            radius[here] = self.certificate.radius(alone)
        return radius


def winners(net: ReadOut, X: Tensor, y: Tensor) -> Tensor:
    """(n,): the sub-class of class y with the largest logit at each point."""
    with torch.no_grad():
        return torch.where(net.class_of == y[:, None], net.net(X), -torch.inf).argmax(dim=1)
