"""Questions about runs: conditions, orders and chosen values, over a real registry and a real index."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from mosaic.daemon import setting_columns
from mosaic.daemon.listing import list_runs
from mosaic.daemon.setting_columns import MOST_COLUMNS, SettingColumns
from mosaic.daemon.settings_text import SettingFinder
from mosaic.ingest.index import Index
from mosaic.model.errors import BadQuery
from mosaic.model.run import Membership, RunConfig, RunSummary, Settings, WorkerSpec
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import run_to_wire

LR = "extras.algo_params.learning_rate"


class Trainer:
    """The parts of a daemon that a listing needs."""

    def __init__(self, folder):
        self.real = Registry.open(folder / "registry.db")
        self.index = Index(folder / "index.sqlite")
        self.root = StateRoot(folder)
        self.registry = SimpleNamespace(do=self._do)
        self.ingest = self
        self.setting_columns = SettingColumns()
        self.decoded = []  # run ids whose summaries were read

    async def _do(self, ask):
        return ask(self.real)

    async def figures(self, run_ids, rundir):
        self.decoded += run_ids
        found = self.index.figures(run_ids)
        return {run_id: found.get(run_id, RunSummary()) for run_id in run_ids}

    async def metric(self, run_ids, rundir, name):
        self.decoded += run_ids
        found = self.index.metric(run_ids, name)
        return {run_id: found.get(run_id) for run_id in run_ids}

    async def metric_names(self, run_ids, rundir):
        return {name for names in self.index.metric_names(run_ids).values() for name in names}

    async def has_metric(self, name):
        return self.index.has_metric(name)

    async def infos(self, records):
        return [run_to_wire(record, "/runs", RunSummary()) for record in records]

    def add(self, name, settings=None, summary=None, membership=None, tags=(), worker="toy"):
        config = RunConfig(
            *(new_ulid(), name, "runs", worker, WorkerSpec(module=worker)),
            settings=Settings(settings or {}),
            membership=membership or Membership(),
            tags=tags,
        )
        self.real.add(config)
        if summary:
            self.index.put(config.run_id, summary)
        return config.run_id

    def ask(self, where="", **request):
        return asyncio.run(list_runs(self, pb.ListRunsRequest(where=where, **request)))

    def names(self, where="", **request):
        return [info.name for info in self.ask(where, **request).runs]


@pytest.fixture
def trainer(tmp_path):
    trainer = Trainer(tmp_path)
    trainer.add(
        "a", {"algo": "ppo", "seed": 1, LR: 1e-3}, RunSummary(mean_return=100.0, last_values={"charts/SPS": 50.0})
    )
    trainer.add(
        "b", {"algo": "ppo", "seed": 2, LR: 3e-4}, RunSummary(mean_return=480.0, last_values={"charts/SPS": 90.0})
    )
    trainer.add("c", {"algo": "dqn", "seed": 1, "optimizer.learning_rate": 1e-3}, RunSummary(mean_return=450.0))
    trainer.add("d", {"task": "pong"}, tags=("paper",), membership=Membership("sweep", {"seed": 1}))
    yield trainer
    trainer.index.close()
    trainer.real.close()


def test_runs_are_chosen_by_fields_settings_and_metrics_newest_first(trainer):
    assert trainer.names("algo=ppo and return>400") == ["b"]
    assert trainer.names(f"{LR}=0.001") == ["a"]
    assert trainer.names("learning_rate=0.001") == ["c", "a"]  # one key in each run, though not the same one
    assert trainer.names("algo_params.learning_rate<0.01") == ["b", "a"]
    assert trainer.names("charts/SPS>=50") == ["b", "a"]
    assert trainer.names("metric.charts/SPS>60 or setting.task=pong") == ["d", "b"]
    assert trainer.names("env=pong and tag=paper and experiment=sweep") == ["d"]
    assert trainer.names("return is missing") == ["d"]
    assert trainer.names("not learning_rate=0.001") == ["d", "b"]


def test_a_setting_that_only_some_runs_have_is_missing_for_the_others(trainer):
    assert trainer.names("learning_rate is missing") == ["d"]
    assert trainer.names("learning_rate!=0.001") == ["b"]


def test_summaries_are_read_only_for_runs_that_the_cheap_parts_leave(trainer):
    trainer.names("return>400 and algo=dqn")

    assert len(trainer.decoded) == 1


def test_a_setting_is_read_once_and_new_runs_and_deleted_ones_are_noticed(trainer, monkeypatch):
    assert trainer.names("learning_rate=0.001") == ["c", "a"]
    read, settings = [], trainer.real.queries.settings
    monkeypatch.setattr(trainer.real.queries, "settings", lambda numbers: read.extend(numbers) or settings(numbers))

    trainer.add("e", {"learning_rate": 1e-3})

    assert trainer.names("learning_rate=0.001") == ["e", "c", "a"]
    assert len(read) == 1
    gone = trainer.ask("name=c").runs[0].run_id
    trainer.real.move(gone, RunState.CANCELLED)
    trainer.real.delete(gone)
    assert trainer.names("learning_rate=0.001", setting_keys=["learning_rate"]) == ["e", "a"]


def test_a_secret_stays_secret_when_it_is_asked_for_again(trainer):
    trainer.add("e", {"api_key": "sk-123"})

    for _ in range(2):
        with pytest.raises(BadQuery, match="is a secret"):
            trainer.ask("api_key~sk")
        shown = trainer.ask("name=e", setting_keys=["api_key"]).runs[0].chosen_settings_json
        assert json.loads(shown) == {"api_key": "***"}


def test_a_number_under_a_secret_name_is_a_secret(trainer):
    trainer.add("e", {"db_password": 1234})

    shown = trainer.ask("name=e", setting_keys=["db_password"]).runs[0].chosen_settings_json

    assert json.loads(shown) == {"db_password": "***"}


def test_that_a_run_has_no_settings_is_not_kept():
    column, row = SettingColumns().of("lr"), {"id": "A", "number": 1, "worker_name": "toy"}

    assert column.values([row], {}) == [("", None)]
    assert column.unread([row]) == [row]
    assert column.values([row], {1: '{"lr": 0.5}'}) == [("lr", 0.5)]


def test_a_column_in_memory_has_a_limit(monkeypatch):
    monkeypatch.setattr(setting_columns, "MOST_RUNS", 2)
    rows = [{"id": str(number), "number": number, "worker_name": "toy"} for number in range(5)]
    column = SettingColumns().of("lr")

    for row in rows:
        column.values([row], {row["number"]: '{"lr": 1}'})

    assert len(rows) - len(column.unread(rows)) <= 3


def test_a_long_value_is_read_again_each_time():
    column, row = SettingColumns().of("text"), {"id": "A", "number": 1, "worker_name": "toy"}
    long = "x" * (setting_columns.LONGEST_KEPT + 1)

    assert column.values([row], {1: json.dumps({"text": long})}) == [("text", long)]
    assert column.unread([row]) == [row]


def test_only_the_newest_columns_of_settings_are_kept_in_memory():
    columns = SettingColumns()
    first = columns.of("name 0")
    for number in range(1, MOST_COLUMNS):
        columns.of(f"name {number}")

    assert columns.of("name 0") is first
    columns.of("one more")
    assert columns.of("name 0") is first
    for number in range(MOST_COLUMNS):
        columns.of(f"other {number}")
    assert columns.of("name 0") is not first


def test_a_name_that_no_run_has_is_refused_with_a_suggestion(trainer):
    with pytest.raises(BadQuery, match=r"No run has .* 'lerning_rate'\. Did you mean 'learning_rate'"):
        trainer.ask("algo=nosuch and lerning_rate=1")
    with pytest.raises(BadQuery, match="Did you mean 'charts/SPS'"):
        trainer.ask(setting_keys=["SPS"])
    with pytest.raises(BadQuery, match="Did you mean 'return'"):
        trainer.ask(sort="-retrun")


def test_a_short_name_that_is_ambiguous_in_a_run_is_refused_with_the_candidates(trainer):
    run_id = trainer.add("e", {"actor.gamma": 1, "critic.gamma": 2})

    with pytest.raises(BadQuery, match=rf"'gamma' is ambiguous in run {run_id}.*actor.gamma, critic.gamma"):
        trainer.ask("gamma=1")
    assert trainer.names("actor.gamma=1") == ["e"]


def test_what_a_search_sets_in_its_trials_is_no_setting_of_its_driver(trainer):
    about = {"space.learning_rate": "log:1e-5:1e-2", "places.learning_rate": LR, "worker.config.steps_in_all": 5}
    trainer.add("driver", {**about, "trials": 20}, worker="search")
    trainer.add("trial", {LR: 2e-3, "steps_in_all": 5})

    assert trainer.names("learning_rate>0.0015") == ["trial"]
    assert trainer.names("steps_in_all=5") == ["trial"]
    assert "driver" in trainer.names("learning_rate is missing")
    assert trainer.names("trials=20 and space.learning_rate~log") == ["driver"]


def test_a_secret_is_redacted_and_cannot_be_asked_for(trainer):
    trainer.add("e", {"extras.api_key": "sk-12345", "max_tokens": 512, "url": "https://me:hunter2@box/v1"})

    for where in ("api_key~sk-1", "api_key=sk-12345", "not extras.api_key=x", "setting.api_key is missing"):
        with pytest.raises(BadQuery, match="is a secret"):
            trainer.ask(where)
    with pytest.raises(BadQuery, match="is a secret"):
        trainer.ask(sort="api_key")
    assert trainer.names("url~hunter2") == []
    assert trainer.names("url~box and max_tokens=512") == ["e"]
    shown = trainer.ask("max_tokens=512", setting_keys=["api_key", "url"]).runs[0].chosen_settings_json
    assert json.loads(shown) == {"api_key": "***", "url": "https://me:***@box/v1"}


def test_nothing_of_a_row_is_asked_for_but_its_fields(trainer):
    for name in ("session", "idempotency_key", "config_hash", "capabilities"):
        with pytest.raises(BadQuery, match="No run has"):
            trainer.ask(f"{name} is missing")


def test_chosen_values_come_with_each_run(trainer):
    reply = trainer.ask(setting_keys=["learning_rate", "return", "seed", "charts/SPS", "tags", "state"], limit=2)

    values = [json.loads(info.chosen_settings_json) for info in reply.runs]
    assert values[0] | {"state": ""} == {
        **{"learning_rate": None, "return": None, "seed": None, "charts/SPS": None},
        **{"tags": ["paper"], "state": ""},
    }
    assert values[1]["learning_rate"] == 1e-3
    assert values[1]["return"] == 450.0


def test_the_first_runs_of_an_order_are_those_of_all_runs(trainer):
    reply = trainer.ask(sort="-return", limit=2)

    assert [info.name for info in reply.runs] == ["b", "c"]
    assert (reply.total, reply.next) == (4, 0)
    assert trainer.names(sort="seed,-learning_rate") == ["c", "a", "b", "d"]


def test_pages_have_every_matching_run_once(trainer):
    expected = [trainer.add(f"n{n}", {"size": n % 3}) for n in range(20)][::-1]
    expected = [run_id for n, run_id in zip(range(19, -1, -1), expected, strict=True) if n % 3]

    found, before = [], 0
    while True:
        reply = trainer.ask("size>0", page_runs=3, before=before)
        found += [info.run_id for info in reply.runs]
        assert reply.total == (0 if before else len(expected))
        before = reply.next
        if not before:
            break

    assert found == expected


def test_states_and_a_limit_count_too(trainer):
    trainer.real.move(trainer.add("e", {"algo": "ppo"}), RunState.CANCELLED)

    assert trainer.names("algo=ppo", limit=2) == ["e", "b"]
    assert trainer.names("algo=ppo", states=["CANCELLED"]) == ["e"]
    assert trainer.ask("algo=ppo", limit=1).total == 3
    assert trainer.names("state=live and algo=ppo") == ["b", "a"]


def test_a_damaged_row_meets_no_condition_and_breaks_none(trainer):
    run_id = trainer.add("e", {"algo": "ppo"})
    trainer.real._db.execute(
        "UPDATE runs SET algo = x'00', tags = '{', settings = '[', created_at = 'x', seed = 'y' WHERE id = ?", (run_id,)
    )

    assert trainer.names("algo=ppo or tag=x or learning_rate=2 or age>0 or seed=1") == ["d", "c", "b", "a"]
    assert "e" in trainer.names("algo is missing and age is missing and learning_rate is missing")


def test_settings_that_strict_json_refuses_are_read(trainer):
    trainer.add("e", {"clip": float("inf"), "size": 4})

    assert trainer.names("clip>1e9 and size=4") == ["e"]


@pytest.mark.parametrize(
    "settings",
    [
        {"a.x": 1, "b": 2},
        {"x": 1, "a.x": 2},
        {"max": 5, "a.max": 1, "xx": 3},
        {"b": 'say "x": 5, or a.x": 6', "a.x": [1, {"x": 2}]},
        {"opt": {"x": 1}, "y": 2},
        {"a.x": float("inf")},
        {"a.x": None},
        {"a.x": 'quoted "x": 3', "z": 1},
        {"ä.x": "ü", "x": "\\"},
        {"a.x": 1, "b.x": 2},
        {"ä.x": 1},
        {'a".x': 1},
    ],
)
def test_a_setting_is_found_in_the_text_as_in_the_object(settings):
    expected = {key: value for key, value in settings.items() if key == "x" or key.endswith(".x")}
    if "x" in expected:
        expected = {"x": expected["x"]}

    assert SettingFinder("x").find(json.dumps(settings)) == expected
