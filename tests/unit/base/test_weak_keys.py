"""`WeakKeys`: values are dropped with their keys."""

from __future__ import annotations

import pytest

from plugrt.base.weak_keys import WeakKeys


class Key:
    """An object that can have weak references."""


def test_a_value_goes_with_its_key() -> None:
    table: WeakKeys[Key, object] = WeakKeys()
    first, second, value = Key(), Key(), object()
    assert table.keep(first, value) is value
    assert table.keep(first, object()) is value
    assert (table.find(first), table.find(second)) == (value, None)
    table.keep(second, None)
    assert table.alive() == [first, second]
    del first
    assert table.alive() == [second]
    assert len(table) == 1


@pytest.mark.parametrize("key", [3, [Key()]], ids=["no weak reference", "no hash"])
def test_a_key_that_cannot_be_one_is_refused(key: object) -> None:
    table: WeakKeys[object, int] = WeakKeys()
    with pytest.raises(TypeError):
        table.keep(key, 1)
    with pytest.raises(TypeError):
        table.find(key)
    assert not table
