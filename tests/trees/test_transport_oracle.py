"""The optimum of several candidates against POT, which knows nothing of trees: transport that pays for non-members."""

from collections import Counter
from itertools import product

import numpy as np
import ot
import pytest

from fly_theory.trees import DRAWINGS, optimal_acceptance, transport_acceptance
from tests.oracle import trees as oracle


@pytest.mark.parametrize("drawing", DRAWINGS)
@pytest.mark.parametrize("drafts", [1, 2, 3])
def test_optimum_is_one_minus_the_cost_of_transport_from_drafted_sets(drafts, drawing):
    rng = np.random.default_rng([drafts, DRAWINGS.index(drawing)])
    for vocabulary, concentration in product((3, 4, 5), (0.3, 1.0, 3.0)):
        p, q = rng.dirichlet(np.full(vocabulary, concentration), 2)
        drafted = Counter()
        for candidates, probability in oracle.candidates(q.tolist(), drafts, drawing):
            drafted[frozenset(candidates)] += float(probability)
        weights = np.array([*drafted.values()])
        outside = np.array([[float(token not in members) for token in range(vocabulary)] for members in drafted])
        cost = float(ot.emd2(weights / weights.sum(), p, outside))
        assert optimal_acceptance(p, q, drafts, drawing=drawing) == pytest.approx(1 - cost, abs=1e-9)
        assert transport_acceptance(p, q, drafts, drawing=drawing) == pytest.approx(1 - cost, abs=1e-9)
