"""The check before the first decision: it says what is wrong and what to do."""

import socket

import fault_server as fault


def test_an_endpoint_that_is_down(operator):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"

        answer = operator(model="x", base_url=url, max_retries=0).begin()

    assert (answer["type"], answer["kind"]) == ("error", "infrastructure")
    advice = "Start the server, or correct base_url."
    assert answer["message"] == f"The endpoint {url} cannot be reached: Connection refused. {advice}"


def test_a_wrong_key_that_the_server_repeats(faults, operator, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
    faults.models_status = 401
    faults.models_body = {"error": {"message": "Incorrect API key provided: sk-secret-123."}}

    message = operator(model="x", base_url=faults.base_url).begin()["message"]

    assert "Incorrect API key provided: [key]" in message
    assert message.endswith("Correct the key in the variable OPENAI_API_KEY.")


def test_an_unknown_model(faults, operator):
    near = operator(model="faulty-2", base_url=faults.base_url).begin()["message"]
    far = operator(model="gpt", base_url=faults.base_url).begin()["message"]

    assert 'does not list "faulty-2". Did you mean "faulty-1"?' in near
    assert "Choose from: faulty-1." in far


def test_a_busy_endpoint_is_not_refused(faults, operator):
    faults.models_status, faults.models_body = 429, {"error": {"message": "slow down"}}

    asked = operator(model="x", base_url=faults.base_url)

    assert asked.begin()["type"] == "agent_ready"


def test_a_model_that_is_not_listed_can_be_used_on_request(faults, operator):
    asked = operator(model="secret-model", base_url=faults.base_url, check_model=False)

    assert asked.begin()["type"] == "agent_ready"


def test_an_endpoint_without_a_list_of_models_is_not_refused(faults, operator):
    faults.models_status, faults.models_body = 404, {"error": {"message": "no such path"}}

    assert operator(model="x", base_url=faults.base_url).begin()["type"] == "agent_ready"


def test_the_check_costs_no_tokens_and_is_made_once(faults, operator, rows):
    asked = operator(model=fault.MODEL, base_url=faults.base_url)

    asked.begin()
    faults.models_status = 500
    answer = asked.begin(seed=4)

    assert answer["type"] == "agent_ready"
    assert faults.requests == []
    assert rows() == []
