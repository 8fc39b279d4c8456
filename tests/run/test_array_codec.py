"""The arrays of a run's record come back as they were."""

from __future__ import annotations

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailor.run.array_codec import pack, unpack

KINDS = st.sampled_from(["<f4", "<f2", "<f8", "<i8", "<i4", "|u1", "|b1", ">i4"])
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)


@given(st.data(), SHAPES, KINDS, st.booleans())
def test_arrays_come_back_as_numpy_wrote_them(data, shape, kind, fortran):
    written = data.draw(arrays.arrays(np.dtype(kind), shape))
    written = np.asfortranarray(written) if fortran else written
    read = unpack(pack({"one": written, "other": np.arange(3)}))
    assert read["one"].dtype == written.dtype
    np.testing.assert_array_equal(read["one"], written)
    read["other"][0] = 7  # they may be changed
    assert read["other"].tolist() == [7, 1, 2]


def test_nothing_kept_is_nothing_read():
    assert unpack(None) == {} == unpack(b"")


def test_what_is_no_array_is_named():
    with pytest.raises(ValueError, match="not how numpy heads one"):
        unpack(pack({"names": np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f4")])}))
