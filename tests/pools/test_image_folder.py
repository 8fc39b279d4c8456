from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from PIL import Image
from pool_samples import picture, put

from tailor.errors import InputError
from tailor.pools import Unreadable, open_pool
from tailor.pools.image_decoding import decode_image
from tailor.pools.image_folder import ImageFolder


@pytest.fixture
def folder(tmp_path):
    put(tmp_path / "b" / "2.png", picture(2))
    put(tmp_path / "a" / "1.png", picture(1))
    return tmp_path


def test_new_files_are_appended_and_positions_stay(folder):
    pool = ImageFolder(folder)
    assert pool.ids == ["a/1.png", "b/2.png"]
    before = pool.read([0, 1])
    put(folder / "a" / "z.png", picture(4))
    put(folder / "a" / "0.png", picture(3))
    assert pool.refresh() == 2
    assert pool.ids == ["a/1.png", "b/2.png", "a/0.png", "a/z.png"]
    np.testing.assert_array_equal(pool.read([1])[0], before[1])


def test_a_vanished_file_keeps_its_position_and_may_come_back(folder):
    pool = ImageFolder(folder)
    (folder / "a" / "1.png").unlink()
    assert pool.refresh() == 0
    assert pool.read([0, 1])[0] == Unreadable("missing")
    assert "missing" in pool.content_keys([0])[0]
    put(folder / "a" / "1.png", picture(1))
    assert pool.read([0])[0].shape == (8, 12, 3)


def test_content_key_changes_with_the_file_and_the_size_read(folder):
    key = ImageFolder(folder).content_keys([0])
    assert ImageFolder(folder, max_side=4).content_keys([0]) != key
    put(folder / "a" / "1.png", picture(9, (5, 5)))
    assert ImageFolder(folder).content_keys([0]) != key


def test_hidden_files_others_and_link_loops(folder):
    put(folder / ".cache" / "x.png", picture())
    put(folder / "a" / "._1.png", picture())
    put(folder / "notes.txt", "x")
    os.symlink(folder, folder / "a" / "up")
    os.symlink(folder / "self", folder / "self")
    os.symlink(folder / "b", folder / "c")
    pool = ImageFolder(folder)
    assert pool.ids == ["a/1.png", "b/2.png", "c/2.png"]
    assert pool.ignored == 2


@pytest.mark.parametrize("name", ["süß/ñandú 1.png", "犬/子犬.PNG", "a'\"b/#%.png"])
def test_unicode_names(tmp_path, name):
    put(tmp_path / name, picture())
    assert ImageFolder(tmp_path).ids == [name]
    assert ImageFolder(tmp_path).read([0])[0].shape == (8, 12, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_is_not_utf8_can_be_stored(tmp_path):
    with open(os.fsencode(tmp_path) + b"/caf\xe9.png", "wb") as file:
        file.write(picture())
    pool = ImageFolder(tmp_path)
    assert pool.ids == ["caf\\xe9.png"]
    assert pool.read([0])[0].shape == (8, 12, 3)
    put(tmp_path / "caf\\xe9.png", picture())
    with pytest.raises(InputError, match="there twice"):
        ImageFolder(tmp_path)


@pytest.mark.parametrize("cut", [0, 1, 20, 300, 900])
@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "PPM"])
def test_a_cut_file_is_set_aside(tmp_path, form, cut):
    whole = picture(0, (64, 64), form)
    suffix = {"JPEG": "jpg", "TIFF": "tif"}.get(form, form.lower())
    put(tmp_path / f"whole.{suffix}", whole)
    put(tmp_path / f"cut.{suffix}", whole[:cut])
    cut_one, whole_one = ImageFolder(tmp_path, threads=2).read([0, 1])
    assert isinstance(cut_one, Unreadable)
    assert cut_one.reason == "empty" if cut == 0 else cut_one.reason
    assert whole_one.shape == (64, 64, 3)


def test_text_under_an_image_name(tmp_path):
    put(tmp_path / "a.jpg", "hello, I am no image")
    assert ImageFolder(tmp_path).read([0]) == [Unreadable("not an image")]


def test_a_decompression_bomb(tmp_path, monkeypatch):
    put(tmp_path / "a.png", picture(0, (40, 40)))
    put(tmp_path / "b.png", picture(0, (20, 20)))
    for limit in (1000, 500):  # PIL warns over the limit, and raises over twice the limit
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        large, small = ImageFolder(tmp_path).read([0, 1])
        assert "too large" in large.reason
        assert small.shape == (20, 20, 3)


def test_exif_orientation(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    put(tmp_path / "a.jpeg", picture(0, (40, 20), "JPEG", exif=exif))
    grey = np.random.default_rng(0).integers(0, 256, (20, 40), dtype=np.uint8)
    for mode in ("RGB", "RGBA", "P", "L"):
        for suffix in ("png", "tiff"):
            Image.fromarray(grey).convert(mode).save(tmp_path / f"{mode}.{suffix}", exif=exif)
    pool = ImageFolder(tmp_path)
    for one, example in zip(pool.ids, pool.read(range(len(pool)))):
        assert example.shape == (40, 20, 3)
        if one != "a.jpeg":
            np.testing.assert_array_equal(example[:, :, 0], np.rot90(grey, -1), err_msg=one)
    assert {e.shape for e in ImageFolder(tmp_path, max_side=10).read(range(len(pool)))} == {
        (10, 5, 3)
    }


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "F"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    values = np.linspace(0, 1, 64).reshape(8, 8)
    if mode == "I;16":
        image = Image.fromarray((values * 65535).astype(np.uint16))
    elif mode == "F":
        image = Image.fromarray(values.astype(np.float32))
    else:
        image = Image.fromarray((values * 255).astype(np.uint8)).convert(mode)
    image.save(tmp_path / "a.tif")
    read = ImageFolder(tmp_path).read([0])[0]
    assert read.shape == (8, 8, 3)
    assert read.min() < 5
    assert read.max() > 250
    if mode in ("I;16", "F"):
        np.testing.assert_allclose(read[:, :, 0], values * 255, atol=1)


def _transparent(folder) -> None:
    """Left half red, right half nothing, in every way to say so."""
    alpha = np.zeros((8, 16), np.uint8)
    alpha[:, :8] = 255
    red = np.zeros((8, 16, 3), np.uint8)
    red[:, :8] = (255, 0, 0)
    rgba = Image.fromarray(np.dstack([red, alpha]))
    grey = Image.fromarray(np.dstack([red[:, :, 0] // 2, alpha]))
    palette = rgba.convert("RGB").convert("P")
    nothing = palette.getpixel((15, 0))
    rgba.save(folder / "rgba.png")
    rgba.save(folder / "rgba.webp", lossless=True)
    rgba.save(folder / "rgba.tif")
    grey.save(folder / "grey.png")
    palette.save(folder / "palette.png", transparency=nothing)
    palette.save(folder / "palette.gif", transparency=nothing)
    rgba.convert("RGB").save(folder / "key.png", transparency=(0, 0, 0))


def test_what_is_transparent_is_white(tmp_path):
    """Not black, which is what the colour of a transparent pixel happens to be."""
    _transparent(tmp_path)
    pool = ImageFolder(tmp_path)
    assert len(pool) == 7
    for one, example in zip(pool.ids, pool.read(range(7))):
        assert (example[:, 8:] == 255).all(), one
        left = (127, 127, 127) if one == "grey.png" else (255, 0, 0)
        assert (example[:, :8] == left).all(), one
    half = Image.new("RGBA", (4, 4), (0, 0, 0, 128))
    half.save(tmp_path / "half.png")
    assert abs(int(decode_image(tmp_path / "half.png")[0, 0, 0]) - 127) <= 1


def test_for_the_eye_what_is_transparent_is_a_light_chequerboard(tmp_path):
    Image.new("RGBA", (80, 40), (255, 255, 255, 0)).save(tmp_path / "a.png")
    ground = decode_image(tmp_path / "a.png", checkered=True)
    assert sorted(np.unique(ground).tolist()) == [221, 255]
    assert (ground[0, 0] != ground[0, 4]).all()
    assert (ground[0, 0] == ground[4, 4]).all()
    Image.new("RGB", (80, 40), (9, 9, 9)).save(tmp_path / "b.png")
    assert (decode_image(tmp_path / "b.png", checkered=True) == 9).all()


def test_only_files_that_may_be_transparent_have_other_content_keys(tmp_path):
    """Features that were cached for a folder of JPEGs stay found."""
    put(tmp_path / "a.jpg", picture(0, (4, 4), "JPEG"))
    put(tmp_path / "b.PNG", picture(0, (4, 4)))
    put(tmp_path / "c.bmp", picture(0, (4, 4), "BMP"))
    of_jpeg, of_png, of_bmp = ImageFolder(tmp_path, max_side=3).content_keys([0, 1, 2])
    assert of_jpeg.endswith("|3")
    assert of_png.endswith("|3|on white")
    assert of_bmp.endswith("|3|on white")


def test_max_side_keeps_the_shape_and_never_enlarges(tmp_path):
    put(tmp_path / "a.jpg", picture(0, (400, 200), "JPEG"))
    put(tmp_path / "b.png", picture(0, (400, 200)))
    put(tmp_path / "c.png", picture(0, (10, 20)))
    shapes = [e.shape for e in ImageFolder(tmp_path, max_side=50).read([0, 1, 2])]
    assert shapes == [(25, 50, 3), (25, 50, 3), (20, 10, 3)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every folder")
def test_a_closed_folder_is_set_aside(folder):
    (folder / "b").chmod(0)
    try:
        pool = ImageFolder(folder)
        assert pool.ids == ["a/1.png"]
        assert "b/" in pool.set_aside()
    finally:
        (folder / "b").chmod(0o755)


def test_what_it_refuses(tmp_path, folder):
    with pytest.raises(InputError, match="labels is 'name'"):
        ImageFolder(folder, labels="name")
    with pytest.raises(InputError, match="max_side is 0"):
        ImageFolder(folder, max_side=0)
    with pytest.raises(InputError, match="threads is 0"):
        ImageFolder(folder, threads=0)
    (tmp_path / "none").mkdir()
    put(tmp_path / "none" / "x.txt", "x")
    with pytest.raises(InputError, match="1 other files"):
        ImageFolder(tmp_path / "none")
    with pytest.raises(InputError, match="did you mean 'max_side'"):
        open_pool(folder, max_sid=3)
