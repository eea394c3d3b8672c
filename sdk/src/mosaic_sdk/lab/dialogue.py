"""The protocol of interactive workers: a command on stdin, one answer on stdout.

ping                              any answer
reset{seed, options}           →  ready
step[{action}]                 →  step; with the last step of an episode, episode_done after it
init_agent                     →  agent_ready
select_action{observation, …}  →  action_selected{action}
stop                           →  the end, exit code 0
"""

from typing import Any, Dict, List

from mosaic_sdk.lab.scorecard import Fault
from mosaic_sdk.lab.trial import Trial

MOST_STEPS = 200
EPISODE_OVER = ("episode_done", "episode_end")  # the second is what strangers say


class Dialogue:
    """Says commands to a started trial and takes the answers in their order.

    An answer may take `limit_s` (a library is imported, a model loaded); what belongs to one already given, and the end
    after stop, `grace_s`.
    """

    def __init__(self, trial: Trial, limit_s: float, grace_s: float) -> None:
        self._trial = trial
        self._limit_s = limit_s
        self._grace_s = grace_s
        self._heard = 0

    def play_episode(self) -> None:
        """One episode from reset to its end, or as much of it as is needed to believe it."""
        self.ask(["ready"], cmd="reset", seed=1, options={})
        for number in range(MOST_STEPS):
            answer = self.ask(["step", *EPISODE_OVER], cmd="step")
            if answer["type"] in EPISODE_OVER:
                return
            if answer.get("terminated") or answer.get("truncated"):
                self._hear(list(EPISODE_OVER), f"step {number}, the last of its episode,", self._grace_s)
                return

    def choose_action(self, observation: Any) -> None:
        self.ask(["agent_ready", "agent_initialized"], cmd="init_agent", agent_id="agent_0", seed=1)
        question = {"observation": observation, "info": {}, "action_mask": None, "agent_id": "agent_0"}
        answer = self.ask(["action_selected"], cmd="select_action", **question)
        if "action" not in answer:
            raise Fault(f"action_selected without an action: {answer}")

    def stop(self) -> None:
        self._trial.tell({"cmd": "stop"})
        if self._trial.wait(self._grace_s) != 0:
            raise Fault(f"after stop: {self._trial.ended}")

    def ask(self, wanted: List[str], **command: Any) -> Dict[str, Any]:
        """The answer to a command, which must be of a wanted type; of any type when none is wanted."""
        self._trial.tell(command)
        return self._hear(wanted, str(command["cmd"]), self._limit_s)

    def _hear(self, wanted: List[str], asked: str, limit_s: float) -> Dict[str, Any]:
        if not self._trial.wait_for(lambda: len(self._trial.objects()) > self._heard, limit_s):
            raise Fault(f"{asked} was not answered with {wanted[0] if wanted else 'a line'}; {self._silence(limit_s)}")
        answer = self._trial.objects()[self._heard]
        self._heard += 1
        if "type" not in answer or (wanted and answer["type"] not in wanted):
            raise Fault(f"{asked} was answered with {str(answer)[:160]}")
        return answer

    def _silence(self, limit_s: float) -> str:
        if self._trial.code is None:
            return f"nothing came in {limit_s:g} s"
        words = self._trial.last_words
        return f"{self._trial.ended}; last words: {words}" if words else self._trial.ended
