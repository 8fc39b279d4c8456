from __future__ import annotations

import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from tailor.errors import InputError
from tailor.pools import Unreadable, open_pool
from tailor.pools.arrays import Arrays


def test_kinds():
    grey = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    read = Arrays(grey).read([1])[0]
    assert read.shape == (3, 4, 3)
    np.testing.assert_array_equal(read[:, :, 2], grey[1])
    assert Arrays(grey[..., None]).read([0])[0].shape == (3, 4, 3)
    assert Arrays(np.ones((2, 3), bool)).read([0])[0].dtype == np.float32


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((0, 3)), "no rows"),
        (np.zeros((2, 3, 4)), "dtype float64"),
        (np.zeros((2, 3, 8, 8), np.uint8), "channels last"),
        (np.array([["a"]]), "dtype <U1"),
        (np.zeros((2, 2), complex), "real numbers"),
    ],
)
def test_what_it_refuses(array, message):
    with pytest.raises(InputError, match=message):
        Arrays(array)


def test_ids_and_labels_must_fit():
    data = np.eye(3)
    with pytest.raises(InputError, match="2 ids for 3 rows"):
        Arrays(data, ids=["a", "b"])
    with pytest.raises(InputError, match="id 'a' is there twice: entries 0 and 2"):
        Arrays(data, ids=["a", "b", "a"])
    with pytest.raises(InputError, match="1 labels for 3 rows"):
        Arrays(data, labels=[1])
    assert Arrays(data, labels=["x", "y", "x"]).labels() == {"0": "x", "1": "y", "2": "x"}
    with pytest.raises(InputError, match="hand them in again"):
        Arrays(data).describe()


def test_a_longer_file_grows_the_pool_and_a_shorter_one_is_set_aside(tmp_path):
    path = tmp_path / "x.npy"
    data = np.arange(40, dtype=np.float32).reshape(10, 4)
    np.save(path, data[:6])
    pool = open_pool(path)
    np.save(path, data)
    assert pool.refresh() == 4
    assert pool.ids[-1] == "9"
    np.testing.assert_array_equal(pool.read([9, 3, 9]), data[[9, 3, 9]])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert pool.read([8, 9]) == [Unreadable("truncated")] * 2
    np.testing.assert_array_equal(pool.read([7])[0], data[7])
    path.unlink()
    assert pool.refresh() == 0
    assert pool.read([0]) == [Unreadable("missing")]


def test_labels_from_another_file(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(2))
    np.save(tmp_path / "y.npy", np.array([4, 5]))
    pool = open_pool(tmp_path / "x.npy", labels=str(tmp_path / "y.npy"))
    assert pool.labels() == {"0": "4", "1": "5"}
    assert open_pool(pool.describe()).labels() == pool.labels()


def test_npz(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, train=np.eye(2), test=np.eye(3))
    with pytest.raises(InputError, match="train, test: name the examples'"):
        open_pool(path)
    assert len(open_pool(path, array="test")) == 3
    with pytest.raises(InputError, match="did you mean 'train'"):
        open_pool(path, array="tran")
    np.savez_compressed(path, x=np.eye(3), label=np.array(["a", "b", "a"]))
    assert open_pool(path).labels() == {"0": "a", "1": "b", "2": "a"}
    path.write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"not a whole .npz"):
        open_pool(path)


def test_objects_are_never_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[{}, 1]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="never loaded"):
        open_pool(tmp_path / "x.npy")
    (tmp_path / "y.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match=r"not a whole .npy"):
        open_pool(tmp_path / "y.npy")


def header_of(shape, dtype="<f4"):
    """A .npy file that is nothing but its header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((10**12, 4), "<f4"),
        ((10**12, 28, 28), "|u1"),
        ((10**12,), "<U0"),
        ((10**12, 0), "<f4"),
        ((-1, -4), "<f4"),
    ],
)
@pytest.mark.parametrize("compression", [None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_header_that_claims_more_than_the_file_holds(tmp_path, shape, dtype, compression):
    small = header_of(shape, dtype) + bytes(32)
    path = tmp_path / ("x.npy" if compression is None else "x.npz")
    if compression is None:
        path.write_bytes(small)
    else:
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr("x.npy", small)
            archive.writestr(
                "other.npy", bytes(10**4)
            )  # what else is in the archive does not count
    with pytest.raises(InputError, match="its header claims an array of shape"):
        open_pool(path, **({} if compression is None else {"array": "x"}))


def test_labels_whose_header_claims_too_much(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(2))
    (tmp_path / "y.npy").write_bytes(header_of((10**12,), "<i8"))
    with pytest.raises(InputError, match="its header claims an array of shape"):
        open_pool(tmp_path / "x.npy", labels=str(tmp_path / "y.npy"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")
def test_slices_of_a_large_file_stay_out_of_memory(tmp_path):
    """A sparse file of 200 MB, read through in slices: the process grows by less than 50 MB."""
    path = tmp_path / "large.npy"
    np.lib.format.open_memmap(path, "w+", np.float32, (50_000, 1024)).flush()
    script = (
        "import sys\nfrom tailor.pools import open_pool\n"
        "def rss(): return int(next(l for l in open('/proc/self/status') if "
        "l.startswith('VmHWM')).split()[1])\n"
        "pool = open_pool(sys.argv[1]); pool.read([0]); before = rss()\n"
        "for start in range(0, len(pool), 1000): pool.read(range(start, start + 1000))\n"
        "print(rss() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 50 * 1024
