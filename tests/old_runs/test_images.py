"""Images of other tools are read without an image library, as PIL reads them."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path

import google_crc32c
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import notebook_probe as nbp
from notebook_probe.old_runs import images
from notebook_probe.old_runs.formats.wandb_images import images_of
from notebook_probe.old_runs.images import ImagePoints, decoded_images
from notebook_probe.old_runs.png import png_pixels, png_size

Pixels = npt.NDArray[np.uint8]
CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}
COLOR = {1: 0, 2: 4, 3: 2, 4: 6}


def noise(height: int, width: int, n: int, seed: int = 0) -> Pixels:
    values = np.random.default_rng(seed).integers(0, 256, (height, width, n), np.uint8)
    return values[..., 0] if n == 1 else values


def by_pil(pixels: Pixels) -> bytes:
    file = BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def png(head: bytes, *others: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(others) + chunk(b"IEND", b"")


def head(height: int, width: int, color: int, depth: int = 8, interlaced: int = 0) -> bytes:
    return struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)


def filtered(kind: int, n: int, height: int = 5, width: int = 7) -> bytes:
    """A PNG each of whose lines has one kind of differences, which are noise."""
    lines = noise(height, width * n, 1, kind)
    data = b"".join(bytes([kind]) + line.tobytes() for line in lines)
    return png(head(height, width, COLOR[n]), chunk(b"IDAT", zlib.compress(data)))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4])
def test_every_kind_of_line_is_read_as_pil_reads_it(kind: int, n: int) -> None:
    data = filtered(kind, n)
    expected = np.asarray(Image.open(BytesIO(data)))
    np.testing.assert_array_equal(png_pixels(data), expected[..., 0] if n == 2 else expected)
    assert png_size(data) == (5, 7)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_what_pil_writes_is_read(n: int) -> None:
    steps = np.add.outer(np.arange(40), np.arange(30)).astype(np.uint8)
    smooth = steps if n == 1 else np.stack([steps + 9 * i for i in range(n)], -1)
    for pixels in (noise(40, 30, n), smooth):
        np.testing.assert_array_equal(png_pixels(by_pil(pixels)), pixels)


def test_colors_of_a_palette_are_looked_up() -> None:
    file = BytesIO()
    picture = Image.fromarray(noise(30, 20, 3)).quantize(200)
    picture.save(file, "png")
    expected = np.asarray(picture.convert("RGB"))
    np.testing.assert_array_equal(png_pixels(file.getvalue()), expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GIF89a", "no PNG"),
        (png(head(2, 2, 0, depth=16)), "another kind"),
        (png(head(2, 2, 0, interlaced=1)), "another kind"),
        (png(head(2, 2, 5)), "another kind"),
        (png(head(0, 2, 0)), "empty or too large"),
        (png(head(1 << 30, 1 << 30, 2)), "empty or too large"),
        (png(head(2, 2, 0), chunk(b"IDAT", b"no zlib")), "damaged"),
        (png(head(2, 2, 0), chunk(b"IDAT", zlib.compress(bytes(5)))), "another number"),
        (png(head(2, 2, 0), chunk(b"IDAT", zlib.compress(bytes(1 << 24)))), "another number"),
        (png(head(1, 1, 0), chunk(b"IDAT", zlib.compress(b"\x07\x00"))), "unknown kind 7"),
        (png(head(1, 1, 3), chunk(b"IDAT", zlib.compress(b"\x00\x03"))), "palette"),
        (png(b"")[:8], "without a head"),
        (png(head(2, 2, 0)).replace(b"IHDR", b"IHDS"), "checksum"),
    ],
    ids=range(13),
)
def test_another_or_a_damaged_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        png_pixels(data)


def test_no_damage_raises_anything_else() -> None:
    data = filtered(4, 3)
    for place in range(len(data)):
        for broken in (data[:place], data[:place] + bytes([data[place] ^ 64]) + data[place + 1 :]):
            try:
                png_pixels(broken)
            except ValueError:
                continue
            assert len(broken) == len(data) or place > len(data) - 13, "only the end may be cut"


def test_of_a_name_one_size_is_kept_and_large_images_are_thinned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = ImagePoints()
    for step, size in ((7, 4), (2, 4), (5, 6)):
        points.add("val/samples", step, 1000.0, by_pil(noise(size, size, 3, step)))
    points.add("val/samples", 7, 2000.0, by_pil(noise(4, 4, 3, 70)))
    points.add("val samples", 0, 0.0, by_pil(noise(8, 6, 1)))
    points.add("text", 0, 0.0, b"no image")
    points.add("before", -1, 0.0, by_pil(noise(2, 2, 1)))
    assert points.n_odd == 2
    monkeypatch.setattr(images, "MOST_ELEMENTS", 48)
    found, n_left_out = decoded_images(points.series())
    assert [one.quantity for one, _ in found] == [
        "logged_val_samples_image",
        "logged_val_samples_image_2",
    ]
    (first, rows), (_, thinned) = found
    assert first.steps.tolist() == [2, 5, 7]
    assert ([*rows], n_left_out) == ([0, 2], 1)
    np.testing.assert_array_equal(rows[2], noise(4, 4, 3, 70), "of a step the last one counts")
    np.testing.assert_array_equal(thinned[0], noise(8, 6, 1))
    monkeypatch.setattr(images, "MOST_ELEMENTS", 20)
    _, (_, smaller) = decoded_images(points.series())[0]
    np.testing.assert_array_equal(smaller[0], noise(8, 6, 1)[::2, ::2])


def test_the_images_of_a_run_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    points, one = ImagePoints(), by_pil(noise(4, 4, 1))
    monkeypatch.setattr(images, "MOST_BYTES", 2 * len(one))
    for step in range(4):
        points.add("a", step, 0.0, one)
    assert points.n_odd == 2
    monkeypatch.setattr(images, "MOST_OF_RUN", 16)
    assert decoded_images(points.series())[1] == 1


# ---------------------------------------------------------------- TensorBoard


def field(number: int, value: bytes | int | float) -> bytes:
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3) + varint(value)


def varint(value: int) -> bytes:
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def event_file(folder: Path, *values: bytes) -> Path:
    """An event for each value, at steps 0, 1, and so on."""
    folder.mkdir()
    path = folder / "events.out.tfevents.1700000000.host"
    with path.open("wb") as file:
        for step, value in enumerate(values):
            summary = field(1, value)
            data = field(1, 1.7e9 + step) + field(2, step) + field(5, summary)
            size = struct.pack("<Q", len(data))
            file.write(size + masked(size) + data + masked(data))
    return folder


def masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def test_both_forms_of_tensorboard_are_series_of_the_record(tmp_path: Path) -> None:
    colors, gray = noise(4, 6, 3), noise(3, 5, 1)
    image = field(1, 4) + field(2, 6) + field(3, 3) + field(4, by_pil(colors))
    plugin = field(9, field(1, field(1, b"images")))
    texts = [b"5", b"3", by_pil(gray), by_pil(255 - gray)]
    tensor = field(1, 7) + b"".join(field(8, one) for one in texts)
    folder = event_file(
        tmp_path / "first",
        field(1, b"samples") + field(4, image),
        field(1, b"digits/val") + field(8, tensor) + plugin,
        field(1, b"broken") + field(4, field(4, b"no image")),
        field(1, b"loss") + varint(2 << 3 | 5) + struct.pack("<f", 0.5),
    )
    with pytest.warns(nbp.RecordWarning, match="1 images are left out"):
        run = nbp.open_run(folder)
    found = run.series("", "logged_samples_image")
    assert found.step.values.tolist() == [0]
    np.testing.assert_array_equal(found.values[0], colors)
    np.testing.assert_array_equal(run.series("", "logged_digits_val_image").values[0], gray)
    np.testing.assert_array_equal(run.series("", "logged_digits_val_1_image").values[0], 255 - gray)
    assert run.series("", "loss").values.tolist() == [0.5], "numbers after it are read"


# ---------------------------------------------------------------- W&B


def test_files_of_wandb_are_read_below_their_folder_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    data, secret = by_pil(noise(2, 2, 1)), tmp_path / "secret.png"
    (folder / "a.png").write_bytes(data)
    secret.write_bytes(data)
    (folder / "link.png").symlink_to(secret)
    one = {"_type": "image-file", "path": "a.png"}
    assert images_of(one, folder) == [data]
    several = {"_type": "images/separated", "filenames": ["a.png", "b.png", 3, "a.png"]}
    assert images_of(several, folder) == [data, b"", data]
    for name in ("../secret.png", str(secret), "link.png", "nul\0", ".", None):
        assert [*filter(None, images_of({"path": name}, folder))] == []
    assert images_of({"filenames": "a.png"}, folder) == []
