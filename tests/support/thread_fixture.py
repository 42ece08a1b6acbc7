"""A fixture that limits tests to one thread, as trainers are limited.

It applies to all tests below a conftest that imports it.
"""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Limits torch to one thread; more threads slow down networks of this size."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
