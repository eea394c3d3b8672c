import os

from mosaic.model.inputs import MERGED, is_input_link, link_inputs, names_to_link


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_what_exists_is_linked_and_what_is_new_belongs_to_the_run(tmp_path):
    caller, run = tmp_path / "caller", tmp_path / "state/run"
    make(caller, "train.py", "data/a.csv", "runs/old", "wandb/old", ".git/HEAD")
    run.mkdir(parents=True)

    link_inputs(run, str(caller))

    assert sorted(os.listdir(run)) == ["data", "train.py"]
    assert (run / "data/a.csv").read_text() == "data/a.csv"


def test_a_name_of_the_run_is_kept_and_linking_can_be_repeated(tmp_path):
    caller, run = tmp_path / "caller", tmp_path / "run"
    make(caller, "logs/mine.txt", "x")
    make(run, "logs/worker.stdout.log")

    link_inputs(run, str(caller))
    link_inputs(run, str(caller))

    assert not (run / "logs").is_symlink()
    assert (run / "x").is_symlink()


def test_the_files_of_a_config_folder_are_linked_one_by_one(tmp_path):
    caller, run = tmp_path / "caller", tmp_path / "run"
    make(caller, f"{MERGED}/ppo.yaml", f"{MERGED}/base_config.json")
    make(run, f"{MERGED}/base_config.json")

    link_inputs(run, str(caller))

    assert (run / MERGED / "ppo.yaml").read_text() == f"{MERGED}/ppo.yaml"
    assert not (run / MERGED / "base_config.json").is_symlink()


def test_the_folder_that_contains_the_run_is_not_linked_into_it(tmp_path):
    make(tmp_path, "home/trainer/x", "other")

    assert names_to_link(str(tmp_path), tmp_path / "home" / "trainer" / "run") == ["other"]


def test_a_link_that_another_program_created_is_told_from_ours(tmp_path):
    caller, run = tmp_path / "caller", tmp_path / "run"
    make(caller, "data", "x")
    run.mkdir()
    link_inputs(run, str(caller))
    (run / "logs").symlink_to("/etc")

    assert is_input_link(run / "data", str(caller))
    assert not is_input_link(run / "logs", str(caller))
    assert not is_input_link(run / "data", "")


def test_a_folder_that_is_gone_has_nothing_to_link(tmp_path):
    assert names_to_link(str(tmp_path / "gone"), tmp_path) == []
