"""The test picture: it moves, it is whole, and it needs no numpy."""

import subprocess
import sys

import pytest
from toy_worker.picture import TestPicture as Picture


@pytest.mark.parametrize(("width", "height"), [(320, 240), (8, 8), (100, 9), (9, 100)])
def test_the_picture_has_its_size_and_its_first_and_last_pixel_hold_the_step(width, height):
    picture = Picture(width, height)
    for _ in range(300):
        picture.step((1.0, False))

    shown = picture.render()

    assert shown.shape == (height, width, 3)
    assert shown.tobytes()[:3] == shown.tobytes()[-3:] == (300).to_bytes(3, "little")


def test_the_picture_moves_with_every_step():
    picture = Picture(64, 48)
    seen = set()
    for _ in range(100):
        picture.step((1.0, False))
        seen.add(picture.render().tobytes())

    assert len(seen) == 100


def test_it_is_painted_without_numpy():
    script = (
        "import sys; sys.modules['numpy'] = None; from toy_worker.picture import TestPicture as P; P(20, 20).render()"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_numpy_the_worker_says_so_and_goes_on(capfd, monkeypatch):
    from toy_worker.config import ToyConfig
    from toy_worker.fastlane import show_picture

    for name in [name for name in sys.modules if name.startswith("mosaic_sdk.fastlane") or name == "numpy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)

    assert show_picture(ToyConfig(run_id="x")) is None
    assert "Frames need numpy" in capfd.readouterr().err
