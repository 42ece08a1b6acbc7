"""Blocks of epochs: texts are decoded byte by byte, and damaged bytes are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.metrics import epoch_blocks
from app.metrics.columns import BlockDamagedError
from palestra.contract.names import MAX_STEP

epochs = st.lists(
    st.tuples(st.integers(0, MAX_STEP), st.text(st.characters(exclude_categories=["Cs"]))),
    max_size=30,
)


@given(epochs)
def test_a_block_returns_what_it_was_given(given_epochs: list[epoch_blocks.Epoch]) -> None:
    assert epoch_blocks.decode(epoch_blocks.encode(given_epochs)) == given_epochs


@given(epochs, st.integers(1, 40))
def test_epochs_are_cut_in_order_into_blocks_that_are_complete_but_for_the_last(
    given_epochs: list[epoch_blocks.Epoch], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epoch_blocks, "MAX_BYTES", most)
        parts = list(epoch_blocks.cut(given_epochs))
    assert [epoch for part in parts for epoch in part] == given_epochs
    sizes = [[len(text.encode()) for _, text in part] for part in parts]
    assert all(sum(some) >= most for some in sizes[:-1])
    assert all(sum(some[:-1]) < most for some in sizes)


@pytest.mark.parametrize("length", [0, 3, 11, 14, -1])
def test_a_truncated_block_is_refused(length: int) -> None:
    whole = epoch_blocks.encode([(1, '{"wall":1.0}'), (5, '{"wall":"NaN"}'), (6, "é" * 200)])
    with pytest.raises(BlockDamagedError):
        epoch_blocks.decode(whole[:length])


def test_a_block_of_another_kind_is_refused() -> None:
    whole = epoch_blocks.encode([(1, "{}")])
    with pytest.raises(BlockDamagedError, match="not a block of epochs"):
        epoch_blocks.decode(b"PCB2" + whole[4:])
