"""What a model is shown."""

from balrog_worker.actions import Actions
from balrog_worker.config import BalrogConfig
from balrog_worker.games.game import Game, View
from balrog_worker.prompt import Prompt, Turn, response_format


def prompt_of(**settings):
    config = BalrogConfig(run_id="R1", model="m", **settings)
    game = Game()
    game.goal, game.actions = "Reach the door.", Actions({"left": "turn", "go": ""})
    return Prompt(config, game), config, game


def played(prompt, count, **more):
    for number in range(count):
        turn = {"thought": f"I think {number}", "was_invalid": False, **more}
        prompt.remember(Turn(View(f"view {number}", f"hunger {number}"), "go", **turn))
    return prompt.messages(View("view now", "hunger now"))


def test_the_window_holds_the_last_turns_and_the_passing_part_only_once():
    prompt, _, _ = prompt_of(history=2)

    messages = played(prompt, 5)

    assert [message["role"] for message in messages] == ["system", *["user", "assistant"] * 2, "user"]
    assert [message["content"] for message in messages[1:]] == [
        "view 3",
        "go",
        "view 4",
        "go",
        "hunger now\n\nview now",
    ]
    system = messages[0]["content"]
    assert system.startswith("Reach the door.")
    assert "- left: turn\n- go" in system
    assert "exactly one action" in system


def test_without_history_only_the_newest_view_is_shown():
    prompt, _, _ = prompt_of(history=0)

    assert [message["role"] for message in played(prompt, 3)] == ["system", "user"]


def test_a_chain_of_thought_sees_its_last_reasoning_again():
    prompt, _, _ = prompt_of(agent="chain_of_thought", history=3, thought_history=1)

    messages = played(prompt, 3)

    answers = [message["content"] for message in messages if message["role"] == "assistant"]
    assert answers == ["ACTION: go", "ACTION: go", "I think 2\nACTION: go"]
    assert "ACTION: <action>" in messages[0]["content"]


def test_a_model_is_told_that_its_answer_named_no_action():
    prompt, _, _ = prompt_of()

    newest = played(prompt, 1, was_invalid=True)[-1]["content"]

    assert newest.startswith("Your last answer named no valid action, so this one was taken: go")


def test_the_server_can_be_held_to_the_actions():
    _, config, game = prompt_of(output="json_schema", agent="chain_of_thought")

    schema = response_format(config, game)["json_schema"]["schema"]

    assert schema["properties"]["action"] == {"enum": ["left", "go"]}
    assert schema["required"] == ["thought", "action"]
    assert response_format(config.replace(output="text"), game) is None
