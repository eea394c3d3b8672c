import json
import os

import pytest

from mosaic.present import analytics
from mosaic.present.analytics import read_analytics


@pytest.fixture
def run_dir(tmp_path):
    folder = tmp_path / "run"
    for name in ("tensorboard", "videos/eval", "logs"):
        (folder / name).mkdir(parents=True)
    return folder


def manifest(run_dir, **artifacts):
    (run_dir / "analytics.json").write_text(json.dumps({"version": 1, "artifacts": artifacts}))


def names(files):
    return [file.name for file in files]


def test_an_empty_run_has_nothing(run_dir):
    assert read_analytics(run_dir).is_empty
    assert read_analytics(run_dir / "missing").is_empty


def test_a_run_that_has_not_finished_is_read_from_its_folders(run_dir):
    (run_dir / "tensorboard" / "events.out").write_bytes(b"x")
    (run_dir / "videos" / "a.mp4").write_bytes(b"12345")

    found = read_analytics(run_dir)

    assert found.has_tensorboard
    assert [(file.name, file.bytes) for file in found.videos] == [("videos/a.mp4", 5)]


def test_videos_and_reports_are_listed_newest_last(run_dir):
    for age, name in enumerate(["videos/new.gif", "videos/eval/old.MP4", "report.html", "videos/note.txt"]):
        (run_dir / name).write_bytes(b"x")
        os.utime(run_dir / name, (1000 - age, 1000 - age))
    manifest(run_dir, videos_dir="videos")

    found = read_analytics(run_dir)

    assert names(found.videos) == ["videos/eval/old.MP4", "videos/new.gif"]
    assert [file.is_animation for file in found.videos] == [False, True]
    assert names(found.reports) == ["report.html"]


@pytest.mark.parametrize("named", ["..", "../other", "/etc", "link", "\0", 7, None, ""])
def test_a_manifest_cannot_name_a_folder_outside(run_dir, tmp_path, named):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.mp4").write_bytes(b"x")
    (run_dir / "link").symlink_to(tmp_path / "other")
    manifest(run_dir, videos_dir=named, tensorboard={"log_dir": named})

    found = read_analytics(run_dir)

    assert (found.videos, found.has_tensorboard) == ((), False)


def test_links_are_not_listed(run_dir, tmp_path):
    (tmp_path / "outside.mp4").write_bytes(b"x")
    (run_dir / "videos" / "a.mp4").symlink_to(tmp_path / "outside.mp4")
    (run_dir / "videos" / "folder").symlink_to(tmp_path)
    os.mkfifo(run_dir / "videos" / "pipe.mp4")

    assert read_analytics(run_dir).videos == ()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"artifacts": 3}', '{"artifacts": {"wandb": [], "tensorboard": 3}}']
)
def test_a_manifest_that_makes_no_sense_is_ignored(run_dir, content):
    (run_dir / "analytics.json").write_text(content)

    assert read_analytics(run_dir).is_empty


def test_wandb_has_a_link_only_if_it_is_one(run_dir):
    (run_dir / "wandb" / "offline-run-1").mkdir(parents=True)
    manifest(run_dir, wandb={"project": "cleanRL", "url": "https://wandb.ai/x/y/runs/z", "directory": "wandb"})
    good = read_analytics(run_dir).wandb
    manifest(run_dir, wandb={"project": "cleanRL", "url": "file:///etc/passwd"})
    bad = read_analytics(run_dir).wandb

    assert (good.project, good.url) == ("cleanRL", "https://wandb.ai/x/y/runs/z")
    assert [path.name for path in good.offline] == ["offline-run-1"]
    assert bad.url == ""


def test_many_files_are_bounded(run_dir, monkeypatch):
    monkeypatch.setattr(analytics, "MOST_FILES", 3)
    for i in range(5):
        (run_dir / "videos" / f"{i}.mp4").write_bytes(b"x")
        os.utime(run_dir / "videos" / f"{i}.mp4", (i, i))

    found = read_analytics(run_dir)

    assert (names(found.videos), found.has_more) == (["videos/2.mp4", "videos/3.mp4", "videos/4.mp4"], True)


def test_the_files_of_an_imported_run_are_listed_where_they_are(run_dir, tmp_path):
    place = tmp_path / "runs" / "CartPole__ppo__1"
    (place / "videos").mkdir(parents=True)
    for name in ("events.out.tfevents.1", "videos/a.mp4", "report.html"):
        (place / name).write_bytes(b"x")
    manifest(run_dir, tensorboard={"log_dir": str(place)})

    found = read_analytics(run_dir, f"tensorboard:{place}")

    assert found.has_tensorboard
    assert [file.path for file in (*found.videos, *found.reports)] == [place / "videos/a.mp4", place / "report.html"]
    assert found.wandb is None
    assert read_analytics(run_dir).is_empty  # without an origin it is a worker's own manifest


def test_an_imported_wandb_run_can_be_uploaded(run_dir, tmp_path):
    place = tmp_path / "wandb" / "offline-run-20260101_000000-abc"
    place.mkdir(parents=True)
    manifest(run_dir, wandb={"directory": str(place), "project": "cartpole"})

    found = read_analytics(run_dir, f"wandb:{place}").wandb

    assert (found.project, found.offline) == ("cartpole", (place,))


def test_of_an_imported_run_whose_folder_is_gone_or_a_file_nothing_is_listed(run_dir, tmp_path):
    (tmp_path / "monitor.csv").write_bytes(b"x")

    assert read_analytics(run_dir, f"sb3:{tmp_path / 'monitor.csv'}").is_empty
    assert read_analytics(run_dir, f"sb3:{tmp_path / 'gone'}").is_empty
