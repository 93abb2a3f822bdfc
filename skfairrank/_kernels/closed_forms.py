from skfairrank._kernels import attack as _a


def exact_box(w, raw, basis, shrink, *rest):
    return _a.exact_box(w, raw, basis, *rest)


def exact_budget(w, basis, shrink, *rest):
    return _a.exact_budget(w, basis, *rest)
