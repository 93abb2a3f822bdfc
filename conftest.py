"""Fixtures that several modules and pages share. There is one such file, since two of one name can't both be imported."""

import pytest
import sklearn


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """A folder without any data file, named by SKFAIRRANK_DATA."""
    folder = tmp_path / "nothing"
    folder.mkdir()
    monkeypatch.setenv("SKFAIRRANK_DATA", str(folder))
    return folder


@pytest.fixture
def no_network(tmp_path, monkeypatch):
    """Nothing listens where the proxy is said to be, and scikit-learn's cache is empty."""
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://127.0.0.1:9")
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))


@pytest.fixture
def routing():
    """scikit-learn's metadata routing, switched on."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def plt():
    """pyplot without a screen, whose figures are closed afterwards."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")
