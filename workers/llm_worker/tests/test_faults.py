"""What an endpoint can do wrong. None of it becomes an action."""

import json

import fault_server as fault
import pytest

TIMEOUT_S = 1.0  # enough for a good answer on a busy machine
PASSING = {
    "rate_limit": fault.status(429, "slow down", {"Retry-After": "0.01"}),
    "server_error": fault.status(500, "out of memory"),
    "timeout": fault.hang,
    "connection": fault.reset,
    "garbage": fault.document(b"<html>502 Bad Gateway</html>"),
}
MORE = {
    "drip": ("timeout", fault.drip),
    "drip in a header": ("timeout", fault.drip_header),
    "half an answer": ("connection", fault.cut),
    "huge": ("garbage", fault.huge),
    "no choices": ("garbage", fault.document({"choices": []})),
    "a list": ("garbage", fault.document([1, 2])),
    "no message": ("garbage", fault.document({"choices": [{"message": None}]})),
    "content that is a number": ("garbage", fault.document({"choices": [{"message": {"content": 7}}]})),
    "nested too deeply": ("garbage", fault.document(b"[" * 200_000)),
    "503": ("server_error", fault.status(503)),
}
CASES = [*((kind, kind, one) for kind, one in PASSING.items()), *((name, *pair) for name, pair in MORE.items())]


@pytest.mark.parametrize(("kind", "one"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_failure_that_passes_is_retried_and_counted(faults, faulty, rows, kind, one):
    asked = faulty(timeout_s=TIMEOUT_S if kind == "timeout" else 20)
    faults.faults.append(one)

    answer = asked.act()

    assert (answer["type"], answer["action"]) == ("action_selected", 0)
    assert answer["report"]["infrastructure"] == {kind: 1}
    assert (answer["report"]["retries"], answer["report"]["requests"]) == (1, 2)
    assert [row["action"] for row in rows()] == [0]


@pytest.mark.parametrize(("kind", "one"), PASSING.items(), ids=PASSING)
def test_a_failure_that_stays_ends_the_decision_and_never_becomes_an_action(faults, faulty, rows, kind, one):
    asked = faulty(max_retries=1, fallback="random", timeout_s=TIMEOUT_S if kind == "timeout" else 20)
    faults.always = one

    answer = asked.act()

    assert (answer["type"], answer["kind"]) == ("error", "infrastructure")
    assert faults.base_url in answer["message"]
    assert len(faults.requests) == 2
    (row,) = rows()
    assert (row["action"], row["fallback"], row["illegal"]) == (None, "", 0)
    assert row["infrastructure"] == {kind: 2}
    assert row["error"]


def test_the_next_decision_after_a_failure_is_made(faults, faulty):
    asked = faulty(max_retries=0)
    faults.faults.append(fault.reset)

    assert asked.act()["type"] == "error"
    assert asked.act()["action"] == 0


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (fault.status(401, "bad key"), "key"),
        (fault.status(404, "no such model"), "not_found"),
        (fault.status(400, "the prompt is too long"), "bad_request"),
        (fault.status(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
        (fault.status(429, "come back tomorrow", {"Retry-After": "86400"}), "rate_limit"),
    ],
    ids=["401", "404", "400", "quota", "a long Retry-After"],
)
def test_a_failure_that_cannot_pass_is_not_retried(faults, faulty, one, kind):
    asked = faulty(max_retries=5)
    faults.always = one

    answer = asked.act()

    assert answer["kind"] == "infrastructure"
    assert answer["report"]["infrastructure"] == {kind: 1}
    assert len(faults.requests) == 1


def test_a_decision_has_a_limit_over_all_its_requests(faults, faulty, rows):
    asked = faulty(max_retries=1000, decision_timeout_s=1.0, retry_wait_s=0.1)
    faults.always = fault.status(500)

    answer = asked.act()

    assert answer["kind"] == "infrastructure"
    assert rows()[0]["latency_ms"] < 20_000
    assert len(faults.requests) < 1000


def test_retry_after_is_honoured(faults, faulty):
    asked = faulty()
    faults.faults.append(fault.status(429, "", {"Retry-After": "0.4"}))

    answer = asked.act()

    assert answer["report"]["latency_ms"] >= 400


def test_retry_after_may_be_a_date():
    from mosaic_sdk.llm.faults import retry_after

    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}) > 1e9
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


ILLEGAL = {
    "refusal": fault.answer(None, refusal="I cannot help with that."),
    "unknown_action": fault.answer('{"action": "jump"}'),
    "no_action": fault.answer('{"move": "left"}'),
    "wrong_type": fault.answer('{"action": ["left"]}'),
    "not_json": fault.answer("left"),
    "empty": fault.answer(""),
    "truncated": fault.answer('{"thought": "I wonder whe', finish_reason="length"),
}


@pytest.mark.parametrize(("kind", "one"), ILLEGAL.items(), ids=ILLEGAL)
def test_an_answer_without_a_legal_action_is_bad_play_and_the_model_is_told(faults, faulty, rows, kind, one):
    asked = faulty()
    faults.faults.append(one)

    answer = asked.act()

    assert (answer["action"], answer["report"]["illegal"]) == (0, 1)
    assert answer["report"]["infrastructure"] == {}
    assert rows()[0]["illegal_kinds"] == {kind: 1}
    told = faults.requests[-1]["body"]["messages"][-2:]
    assert [message["role"] for message in told] == ["assistant", "user"]
    assert told[1]["content"].endswith("Answer again.")


def test_tokens_of_every_answer_are_counted_and_cost_what_the_settings_say(faults, faulty, rows):
    prices = {"price_per_million_input": 10, "price_per_million_cached": 1, "price_per_million_output": 100}
    asked = faulty(**prices)
    faults.faults.append(fault.answer('{"action": "jump"}'))

    report = asked.act()["report"]

    assert (report["tokens_in"], report["tokens_cached"], report["tokens_out"]) == (200, 80, 20)
    assert report["cost"] == pytest.approx((120 * 10 + 80 * 1 + 20 * 100) / 1e6)
    assert (report["model_served"], rows()[0]["system_fingerprint"]) == (f"{fault.MODEL}-served", "fp_1")


@pytest.mark.parametrize("policy", ["random", "first", "end"])
def test_after_the_last_retry_the_declared_fallback_is_used_and_counted(faults, faulty, rows, policy):
    asked = faulty(fallback=policy, illegal_retries=1)
    faults.always = fault.answer('{"action": "jump"}')

    answer = asked.act(action_mask=[0, 1, 1])

    assert len(faults.requests) == 2
    assert rows()[0]["fallback"] == policy
    if policy == "end":
        assert (answer["type"], answer["kind"]) == ("error", "forfeit")
    else:
        assert answer["action"] in {"random": (1, 2), "first": (1,)}[policy]
        assert answer["report"]["illegal"] == 2


def test_the_model_is_told_that_an_action_was_chosen_for_it(faults, faulty):
    asked = faulty(fallback="first", illegal_retries=0)
    faults.faults.append(fault.answer("nonsense"))

    asked.act()
    asked.act()

    assert "could not be used" in faults.requests[-1]["body"]["messages"][-1]["content"]


def test_a_fallback_that_the_environment_does_not_have_is_refused_at_the_beginning(faults, operator):
    asked = operator(model=fault.MODEL, base_url=faults.base_url, fallback="noop")

    with pytest.raises(Exception, match="no action of this environment does nothing"):
        asked.begin()

    asked.begin(actions=[{"value": 0, "name": "done"}, {"value": 1, "name": "left"}])
    faults.always = fault.answer("nonsense")
    assert asked.act()["action"] == 0


def test_an_image_is_sent_as_the_api_wants_it(faults, faulty):
    asked = faulty(observation="both")
    png = "iVBORw0KGgoAAAANSUhEUg=="

    asked.act(image=png)
    asked.act(image=png)

    messages = faults.requests[-1]["body"]["messages"]
    text, picture = messages[-1]["content"]
    assert "A wall is ahead." in text["text"]
    assert picture == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}
    assert png not in json.dumps(messages[:-1]), "only the newest image is sent"
    assert "gave no picture" in asked.act()["message"]
