"""LambdaCrawl, Kolobov et al. 2019: experiments 1 and 2 with known change rates, experiment 3 with learned ones."""

from __future__ import annotations

from collections.abc import Iterator

from recrawl.lab.papers import lambdacrawl_known, lambdacrawl_learning
from recrawl.lab.papers.experiment import Experiment, Scale


def experiments(scale: Scale) -> Iterator[Experiment]:
    """Experiments 1, 2 and 3."""
    known = lambdacrawl_known.QUICK if scale.quick else lambdacrawl_known.Setup()
    yield lambdacrawl_known.experiment_1(known)
    yield lambdacrawl_known.experiment_2(known)
    yield lambdacrawl_learning.experiment_3(lambdacrawl_learning.QUICK if scale.quick else lambdacrawl_learning.Setup())
