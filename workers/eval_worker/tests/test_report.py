"""report.html: one valid file, everything in it escaped, nothing in it from elsewhere."""

import base64
import json
import math
import os
import re
from html.parser import HTMLParser

import pytest
from eval_worker.report import write_report
from eval_worker.report_plots import ticks
from mosaic_sdk.results.summary import EvalResults

EVIL = '<script>alert("1")</script>&amp;\x00\ud800'
VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Reads a page and fails if its tags do not match."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.attributes, self.text, self._open = [], [], "", []
        with open(path, encoding="utf-8") as file:
            self.source = file.read()
        self.feed(self.source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def values(self, name):
        return [value for key, value in self.attributes if key == name]


def evaluation(env_id="Count-v0", seeds=12, **more):
    found = EvalResults(run_id="R1", env_id=env_id, seeds=range(seeds), operators={"ppo": {"kind": "rl"}, "chance": {}})
    for seed in range(seeds):
        for index, (operator, value) in enumerate((("ppo", 1.0), ("chance", 0.5 * (seed % 2)))):
            row = {"lane": operator, "env_index": index, "operator": operator, "agent_id": operator, "length": 9 + seed}
            found.add({**row, "episode_index": seed, "seed": seed, "return": value, **more})
    return found


def report(folder, summary, clips=()):
    return Page(write_report(folder, summary, clips))


def test_the_report_has_tables_plots_sentences_and_provenance(tmp_path):
    page = report(tmp_path, evaluation().summary())

    assert page.source.startswith("<!DOCTYPE html>")
    assert page.tags.count("svg") == 3
    assert page.tags.count("circle") == 2 * 12 + 12 + 2 * 12
    assert "ppo beats chance by 0.75" in page.text
    assert "1 [1, 1]" in page.text
    assert "R1" in page.text
    assert "mosaic-sdk" in page.text


def test_the_page_loads_and_runs_nothing(tmp_path):
    page = report(tmp_path, evaluation().summary())

    assert not {"script", "link", "iframe", "object", "base", "form"} & set(page.tags)
    assert not re.search(r"https?:|url\(|@import", page.source)
    assert "default-src 'none'" in page.values("content")[0]
    assert not [key for key, _ in page.attributes if key.startswith("on")]


def test_equal_results_give_equal_reports(tmp_path):
    pages = [report(tmp_path / name, evaluation().summary()).source for name in ("a", "b")]

    assert pages[0] == pages[1]


def test_the_words_of_strangers_are_shown_as_text(tmp_path):
    found = evaluation(env_id=EVIL, reason=EVIL, failed=False)
    found.add({"lane": EVIL, "operator": EVIL, "agent_id": EVIL, "episode_index": 0, "seed": 0, "reason": EVIL})
    found.warn(EVIL)
    summary = {**found.summary(), "ledger": {EVIL: {"models": [EVIL], "tokens_in": 3, "infrastructure": {EVIL: 2}}}}
    (tmp_path / "operators").mkdir()
    row = {"call_id": "1", "text": EVIL, "action_name": EVIL, "seed": EVIL}
    (tmp_path / "operators" / "gpt.ledger.jsonl").write_text(json.dumps(row))

    page = report(tmp_path, summary, [{"path": f"videos/{EVIL}.gif", "operator": EVIL}])

    assert "script" not in page.tags
    assert "\x00" not in page.source
    assert page.text.count('<script>alert("1")</script>&amp;') > 5


def test_what_a_language_model_wrote_is_quoted(tmp_path):
    rows = [
        {"call_id": "1", "text": "I go left.", "action_name": "left", "seed": 3, "step_index": 0},
        {
            "call_id": "2",
            "text": "Never!",
            "action_name": "noop",
            "seed": 3,
            "step_index": 1,
            "illegal": 2,
            "fallback": "noop",
        },
    ]
    (tmp_path / "operators").mkdir()
    (tmp_path / "operators" / "gpt.ledger.jsonl").write_text("\n".join(map(json.dumps, rows)))

    page = report(tmp_path, evaluation().summary(tmp_path))

    assert "I go left." in page.text
    assert "gpt, seed 3, step 1: noop" in page.text
    assert "illegal" in page.text


def test_clips_are_inside_the_page(tmp_path):
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "ppo-3.gif").write_bytes(b"GIF89a")
    (tmp_path / "videos" / "ppo-4.mp4").write_bytes(b"mp4")
    (tmp_path / "videos" / "notes.txt").write_bytes(b"no clip")

    page = report(tmp_path, evaluation().summary())

    assert f"data:image/gif;base64,{base64.b64encode(b'GIF89a').decode()}" in page.values("src")
    assert f"data:video/mp4;base64,{base64.b64encode(b'mp4').decode()}" in page.values("src")
    assert len(page.values("src")) == 2
    assert "ppo-3" in page.text


def test_a_large_clip_is_a_link(tmp_path, monkeypatch):
    monkeypatch.setattr("eval_worker.report_clips.MOST_BYTES", 10)
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "ppo 3.gif").write_bytes(b"GIF89a" * 3)

    page = report(tmp_path, evaluation().summary(), [{"path": "videos/ppo 3.gif", "operator": "ppo", "seed": 3}])

    assert page.values("href") == ["videos/ppo%203.gif"]
    assert "ppo, seed 3: too large for this page" in page.text


@pytest.mark.parametrize(
    "path", ["../secret.gif", "/etc/hostname.gif", "videos/link.gif", "videos/pipe.gif", "videos/none.gif"]
)
def test_only_files_of_the_run_are_shown(tmp_path, path):
    (tmp_path / "secret.gif").write_bytes(b"secret")
    videos = tmp_path / "run" / "videos"
    videos.mkdir(parents=True)
    (videos / "link.gif").symlink_to(tmp_path / "secret.gif")
    os.mkfifo(videos / "pipe.gif")

    page = report(tmp_path / "run", evaluation().summary(), [{"path": path}])

    assert "Clips" not in page.text


def test_failed_episodes_and_warnings_are_shown(tmp_path):
    found = evaluation()
    row = {"lane": "ppo", "operator": "ppo", "agent_id": "ppo", "episode_index": 2, "seed": 2}
    found.add({**row, "reason": "it died", "return": math.nan})
    for index in range(20):
        found.warn(f"warning number {index}")

    page = report(tmp_path, found.summary())

    assert "11 + 1 failed" in page.text
    assert "it died" in page.values("title")
    assert "warning number 11" in page.text
    assert "warning number 12" not in page.text


def test_games_have_a_record_and_shared_goals_have_lanes(tmp_path):
    def played(returns, lanes=1):
        found = EvalResults(run_id="R1", env_id="game", operators={"ppo": {}, "chance": {}})
        for seed in range(10):
            for lane in range(lanes):
                for seat, operator in enumerate(("ppo", "chance")):
                    row = {"lane": f"team-{lane}", "env_index": lane, "episode_index": seed, "seed": seed}
                    value = returns[seat] + lane
                    found.add({**row, "operator": operator, "agent_id": f"agent_{seat}", "return": value})
        return found.summary()

    game = report(tmp_path / "game", played((1.0, -1.0)))
    team = report(tmp_path / "team", played((1.0, 1.0), lanes=2))

    assert "rating [95 %]" in game.text
    assert "1290 or more" in game.text
    assert "team-1 beats team-0 by 1" in team.text
    assert "rating" not in team.text


def test_an_evaluation_without_an_episode_has_a_report(tmp_path):
    page = report(tmp_path, EvalResults(run_id="R1", env_id="x", operators={"ppo": {}}).summary())

    assert "svg" not in page.tags
    assert "ppo" in page.text


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-3, 4, [-2, 0, 2, 4]),
        (0, 500, [0, 100, 200, 300, 400, 500]),
        (7, 7.01, None),
    ],
)
def test_ticks_are_round_numbers(low, high, expected):
    found = ticks(low, high)

    assert 2 < len(found) <= 7
    assert expected is None or found == expected
