r"""
How to train a PyTorch module as a fair score
=============================================

Who has a neural ranker in PyTorch need not write it again. A score asks for three things: values, the gradient in the parameters
(pulled back from gradients in the scores), and the gradient in the features, along which the adversary moves items.
``torch.autograd`` has all of them. Training stays the package's: parameters are one flat vector.

Without torch this script says so and ends. The figure and the output were recorded, because PyTorch is large:

.. image:: /images/recorded/plot_torch_score.png
   :alt: Kendall's tau with the flipped twin against NDCG of a PyTorch module, for three values of rho

.. literalinclude:: /images/recorded/plot_torch_score.txt
   :language: text
"""

# %%
# The score. It takes a function that makes the module, and not a module, so that ``clone`` starts afresh. The
# module is kept in double precision, since the attack takes differences of scores. Put the class in a file of your own: a fitted
# ranker can then be pickled.
import sys

import matplotlib.pyplot as plt
import numpy as np

from skfairrank import SenSTIRRanker
from skfairrank.adversaries import Ascent
from skfairrank.inspection import TradeoffDisplay
from skfairrank.metrics import kendall_tau_score, ndcg_score
from skfairrank.scores import Score

try:
    import torch
except ImportError:
    torch = None


class TorchScore(Score):
    """Scores of a module that maps each item by itself, to one number.

    Parameters
    ----------
    make_module : callable(n_features) -> torch.nn.Module
    """

    def __init__(self, make_module):
        self.make_module = make_module

    def initial_parameters(self, n_features, rng):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**31)))
            module = self.make_module(n_features).double()
        return (
            torch.nn.utils.parameters_to_vector(module.parameters())
            .detach()
            .numpy()
            .copy()
        )

    def values(self, theta, X):
        with torch.no_grad():
            return self._scores(_tensor(theta), _tensor(X)).numpy()

    def parameter_gradient(self, theta, X, g):
        theta = _tensor(theta).requires_grad_()
        return torch.autograd.grad(self._scores(theta, _tensor(X)) @ _tensor(g), theta)[
            0
        ].numpy()

    def input_gradient(self, theta, X):
        X = _tensor(X).requires_grad_()
        return torch.autograd.grad(self._scores(_tensor(theta), X).sum(), X)[0].numpy()

    def _scores(self, theta, X):
        module = self._module(X.shape[1])
        parameters, at = {}, 0
        for name, parameter in module.named_parameters():
            parameters[name] = theta[at : at + parameter.numel()].view_as(parameter)
            at += parameter.numel()
        return torch.func.functional_call(module, parameters, (X,)).reshape(len(X))

    def _module(self, n_features):
        """The module, whose own parameters are never read.

        It is made once, in evaluation mode, so that nothing in it is random.
        """
        modules = self.__dict__.setdefault("_modules", {})
        if n_features not in modules:
            modules[n_features] = self.make_module(n_features).double().eval()
        return modules[n_features]


def _tensor(array):
    return torch.from_numpy(np.array(array, dtype=np.float64))


def make_module(n_features):
    return torch.nn.Sequential(
        torch.nn.Linear(n_features, 16),
        torch.nn.SiLU(),
        torch.nn.Linear(16, 1, bias=False),
    )


# %%
# A task that no line can learn: relevance goes with the sign of :math:`x_0 x_1`, and, unjustly, with a group that :math:`x_2`
# gives away. Tau is between the sorted list and the list of the same items after :math:`x_2` has changed its sign.
def interaction_task(n_queries, seed, n_items=10):
    rng = np.random.default_rng(seed)
    n = n_queries * n_items
    X, group = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    X[:, 2] = 2 * group - 1 + 0.3 * rng.normal(size=n)
    y = np.clip(np.round(1.5 + np.sign(X[:, 0] * X[:, 1]) + group - 0.5), 0, 4)
    return X, y, np.repeat(np.arange(n_queries), n_items), group


def judge(ranker, X, y, qid):
    s = ranker.predict(X)
    return ndcg_score(y, s, qid=qid), kendall_tau_score(
        s, ranker.predict(X * [1, 1, -1]), qid=qid
    )


quick = "--quick" in sys.argv
points = {}
if torch is None:
    print("This example needs PyTorch, which is not installed: pip install torch.")
else:
    torch.set_num_threads(1)  # batches are small
    X, y, qid, group = interaction_task(20 if quick else 150, seed=0)
    test = interaction_task(20 if quick else 200, seed=1)[:3]
    settings = {
        "max_iter": 10 if quick else 250,
        "learning_rate": 0.04,
        "adversary": Ascent(full_n_steps=5),
        "random_state": 0,
    }
    for rho in (0.0, 0.003, 0.01):
        ranker = SenSTIRRanker(
            rho=rho, score_function=TorchScore(make_module), **settings
        )
        points[rho] = judge(ranker.fit(X, y, qid=qid, sensitive_features=group), *test)
        print(
            f"rho {rho:<6g} NDCG {points[rho][0]:.3f}  "
            f"tau with the flipped twin {points[rho][1]:.3f}"
        )

# %%
# The trade-off of the module, point by point.
if points:
    figure, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
    ndcg, tau = np.array(list(points.values())).T
    ylabel = r"Kendall's $\tau$ with the flipped twin"
    TradeoffDisplay.from_predictions(
        ndcg,
        tau,
        annotations=list(points),
        xlabel="NDCG",
        ylabel=ylabel,
        legend=False,
        ax=ax,
    )
    ax.set_title(r"A PyTorch module as the score (numbers: $\rho$)")
    plt.show()
# sphinx_gallery_thumbnail_path = 'images/recorded/plot_torch_score.png'
