"""The pages' examples switch metadata routing on, as a user does; each page leaves scikit-learn as it found it."""

import pytest
import sklearn


@pytest.fixture(autouse=True)
def same_configuration_afterwards():
    with sklearn.config_context():
        yield
