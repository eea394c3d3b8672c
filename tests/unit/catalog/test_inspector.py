"""Every submitted config is checked against its worker's schema; an unavailable schema does not prevent a run."""

import asyncio
import threading

import pytest

from mosaic.catalog.answers import Answers
from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.inspector import Inspector, judge
from mosaic.model.errors import BadConfig, UnknownWorker
from mosaic.model.run import Settings, WorkerSpec

GOOD = "def get_worker_metadata():\n    return {'name': 'Mine'}, {'worker_type': 'mine'}\n"
SCHEMA = GOOD + "def get_worker_schema():\n    return {'properties': {'steps': {'type': 'integer'}}}\n"


class Watched(Answers):
    """Counts how often a worker is asked."""

    def __init__(self, folder):
        super().__init__(folder)
        self.asked = 0

    def ask(self, worker, limit_s=30.0):
        self.asked += 1
        return super().ask(worker, limit_s)


@pytest.fixture
def answers(root):
    return Watched(root.answers)


@pytest.fixture
def inspect(catalog, answers):
    """Inspects configs of `my_worker` at once, as submits that arrive together; returns notes and errors."""

    def run(*configs):
        async def all_at_once():
            inspector = Inspector(catalog, answers)
            specs = [WorkerSpec(module="my_worker.cli", config=config) for config in configs]
            return await asyncio.gather(*(inspector.inspect(spec) for spec in specs), return_exceptions=True)

        return [getattr(result, "note", result) for result in asyncio.run(all_at_once())]

    return run


def test_a_worker_without_a_cached_schema_is_asked_and_its_schema_applied(inspect, make_environment, install):
    install(make_environment("mine"), "mine", "my_worker", SCHEMA)

    good, bad = inspect({"steps": 3}, {"steps": "three"})

    assert good == ""
    assert isinstance(bad, BadConfig)
    assert str(bad) == 'metadata.worker.config.steps: must be an integer, not "three".'


def test_submits_that_arrive_together_ask_once_and_later_ones_not_at_all(inspect, answers, make_environment, install):
    install(make_environment("mine"), "mine", "my_worker", SCHEMA)

    notes = inspect(*[{"steps": 3}] * 5)
    asked = answers.asked
    inspect({"steps": 3})

    assert (notes, asked, answers.asked) == ([""] * 5, 1, 1)


def test_a_worker_that_answers_slowly_does_not_delay_others(catalog, root, make_environment, install):
    install(make_environment("slow"), "slow", "slow_worker", SCHEMA)
    install(make_environment("mine"), "mine", "my_worker", SCHEMA)
    go, answered = threading.Event(), []

    class Held(Answers):
        def ask(self, worker, limit_s=30.0):
            assert worker.name != "slow" or go.wait(60)
            return super().ask(worker, limit_s)

    async def inspect(inspector, module):
        await inspector.inspect(WorkerSpec(module=module, config={"steps": 3}))
        answered.append(module)

    async def both():
        inspector = Inspector(catalog, Held(root.answers))
        slow = asyncio.create_task(inspect(inspector, "slow_worker.cli"))
        await asyncio.sleep(0)  # it is asked first
        await inspect(inspector, "my_worker.cli")
        go.set()
        await slow

    asyncio.run(both())

    assert answered == ["my_worker.cli", "slow_worker.cli"]


def test_a_worker_that_cannot_report_its_schema_runs_unchecked_with_a_note(inspect, make_environment, install):
    install(make_environment("mine"), "mine", "my_worker", "import nosuchlibrary")

    (note,) = inspect({"steps": "three"})

    assert "settings were not checked" in note
    assert "No module named 'nosuchlibrary'" in note


def test_an_answer_that_cannot_be_cached_is_still_used(inspect, root, make_environment, install):
    install(make_environment("mine"), "mine", "my_worker", SCHEMA)
    root.answers.write_text("a file where a folder belongs")

    (bad,) = inspect({"steps": "three"})

    assert isinstance(bad, BadConfig)


@pytest.mark.parametrize("part", [{"minimum": "low"}, {"pattern": "("}, {"type": 3}, {"enum": 7}, {"maxLength": []}])
def test_an_invalid_schema_does_not_reject_runs(part):
    descriptor = Descriptor(schema={"properties": {"steps": part, "name": part}})

    verdict = judge(WorkerSpec(module="m", config={"steps": 3, "name": "x"}), descriptor)

    assert "the worker's schema cannot be used" in verdict.note
    assert verdict.config == {"steps": 3, "name": "x"}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"name": 3}},
        {"properties": {"name": None}},
        {"properties": []},
        {"properties": {"extras": []}},
        {"properties": {"extras": {"properties": {"algo_params": 7}}}},
        {"properties": {}, "x-mosaic-resume": {"extras": "{checkpoint}", "extras.mode": "resume"}},
    ],
)
def test_a_schema_of_the_wrong_shape_is_not_used(catalog, answers, make_environment, install, schema):
    # A submit looks for checkpoints among the settings before the schema is checked.
    source = f"{GOOD}def get_worker_schema():\n    return {schema!r}\n"
    install(make_environment("mine"), "mine", "my_worker", source)

    told = asyncio.run(
        Inspector(catalog, answers).descriptor_of(WorkerSpec(module="my_worker.cli", config={"name": "x"}))
    )

    assert told.schema == {}
    assert told.capabilities == {"worker_type": "mine"}
    assert "its schema cannot be used: " in told.problem


def test_scripts_and_packages_that_are_not_workers_are_not_asked(catalog, answers, make_environment, install):
    install(make_environment("mine"), "", "my_worker", "raise SystemExit")
    specs = [WorkerSpec(script="/x.py"), WorkerSpec(module="my_worker.cli")]

    async def notes():
        return [(await Inspector(catalog, answers).inspect(spec)).note for spec in specs]

    assert asyncio.run(notes()) == ["", "its settings were not checked: the worker publishes no schema"]
    assert answers.asked == 0


def test_a_worker_without_a_schema_is_recorded_as_unchecked_with_what_was_submitted():
    spec = WorkerSpec(module="m", config={"lr": 3, "extras": {"deep": {"er": 1}}})

    verdict = judge(spec, Descriptor())

    assert verdict.settings == Settings({"lr": 3, "extras.deep.er": 1}, "the worker publishes no schema")
    assert verdict.config == spec.config


VARIANTS = GOOD + "def get_worker_schema():\n    return {'x-mosaic-variants': {'algo': {'ppo_jax': 'jax'}}}\n"


@pytest.fixture
def choose(catalog, answers):
    def run(variant="", **config):
        spec = WorkerSpec(module="my_worker.cli", variant=variant, config=config)
        return asyncio.run(Inspector(catalog, answers).inspect(spec)).variant

    return run


def test_a_value_that_the_schema_maps_to_a_variant_chooses_it(choose, make_environment, install):
    install(make_environment("mine"), "mine", "my_worker", VARIANTS)
    install(make_environment("mine@jax"), "mine", "my_worker", VARIANTS)

    assert [choose(algo="ppo_jax"), choose(algo="ppo"), choose()] == ["jax", "", ""]
    assert choose(variant="jax", algo="ppo") == "jax"


def test_a_variant_that_is_not_installed_is_refused_with_what_to_install(
    choose, make_environment, install, came_from, root
):
    install(make_environment("mine"), "mine", "my_worker", VARIANTS)
    came_from(root, "mine", "mine-worker")

    with pytest.raises(UnknownWorker) as error:
        choose(algo="ppo_jax")

    message = str(error.value)
    assert message.startswith(
        "metadata.worker.variant: algo=ppo_jax needs the variant jax. Worker 'mine@jax' is not inst"
    )
    assert message.endswith("Install it with: mosaic worker install mine@jax")
    assert "Did you mean" not in message


def test_invalid_variants_are_ignored(choose, make_environment, install):
    invalid = GOOD + "def get_worker_schema():\n    return {'x-mosaic-variants': 3}\n"
    install(make_environment("mine"), "mine", "my_worker", invalid)

    assert choose(algo="ppo_jax") == ""
