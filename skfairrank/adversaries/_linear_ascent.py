import numpy as np

from skfairrank._kernels import attack as _attack


class LinearAscent:
    def __init__(
        self,
        raw,
        basis,
        shrink,
        n_queries,
        *,
        rho,
        subspace_step_size,
        subspace_n_steps,
        subspace_init,
        n_starts,
        full_step_size,
        full_n_steps,
        rng,
    ):
        self.raw, self.basis, self.rho = raw, basis, rho
        self.steps = (subspace_step_size, subspace_n_steps, full_step_size, full_n_steps)
        self.subspace_init, self.n_starts, self.rng = subspace_init, n_starts, rng
        self.gaps = np.zeros(n_queries)
        self._stock, self._used = np.empty(0), 0

    def attack(self, batch, w, lambda_, most_spent):
        g = np.empty(len(w))
        r, d = _attack.ascent_attack(
            batch.X,
            batch.rows,
            batch.offsets,
            batch.queries,
            self.gaps,
            w,
            self.raw,
            self.basis,
            self.rho,
            lambda_,
            most_spent,
            self.n_starts,
            self._uniform(batch),
            self.subspace_init,
            *self.steps,
            g,
        )
        return r, d, g

    def _uniform(self, batch):
        sizes = 1 if len(set(np.diff(batch.offsets))) == 1 else len(batch.queries)
        paths = self.n_starts * sizes if self.n_starts else len(batch.rows)
        needed = paths * (self.raw.shape[0] or self.raw.shape[1])
        if self._used + needed > len(self._stock):
            self._stock = np.r_[self._stock[self._used :], self.rng.random(max(4096, needed))]
            self._used = 0
        self._used += needed
        return self._stock[self._used - needed : self._used]
