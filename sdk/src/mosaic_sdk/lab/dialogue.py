"""Interactive mode from the other side: commands on stdin, answers on stdout. mosaic_sdk.interactive has the protocol.

Answers of workers that were not written with the SDK are accepted too (episode_end, agent_initialized).
"""

from typing import Any, Dict, List

from mosaic_sdk import names
from mosaic_sdk.lab.scorecard import Fault
from mosaic_sdk.lab.trial import Trial

MOST_STEPS = 200
EPISODE_OVER = (names.EPISODE_DONE, names.EPISODE_END)
AGENT_READY = [names.AGENT_READY, names.AGENT_INITIALIZED]


class Dialogue:
    """Sends commands to a started trial and reads the answers in order.

    An answer may take `limit_s` (a library is imported, a model loaded); what must follow an answer, and the exit after
    `stop`, may take `grace_s`.
    """

    def __init__(self, trial: Trial, limit_s: float, grace_s: float) -> None:
        self._trial = trial
        self._limit_s = limit_s
        self._grace_s = grace_s
        self._read_count = 0

    def play_episode(self) -> None:
        """One episode from reset to its end, or the first 200 steps of a longer one."""
        self.ask([names.READY], cmd=names.RESET, seed=1, options={})
        for number in range(MOST_STEPS):
            answer = self.ask([names.STEP, *EPISODE_OVER], cmd=names.STEP)
            if answer["type"] in EPISODE_OVER:
                return
            if answer.get("terminated") or answer.get("truncated"):
                self._read(list(EPISODE_OVER), f"step {number}, the last of its episode,", self._grace_s)
                return

    def choose_action(self, observation: Any, space: Any = None) -> None:
        about = {} if space is None else {"action_space": space}
        self.ask(AGENT_READY, cmd=names.INIT_AGENT, agent_id="agent_0", seed=1, **about)
        question = {"observation": observation, "info": {}, "action_mask": None, "agent_id": "agent_0"}
        answer = self.ask([names.ACTION_SELECTED], cmd=names.SELECT_ACTION, **question)
        if "action" not in answer:
            raise Fault(f"action_selected without an action: {answer}")

    def stop(self) -> None:
        self._trial.send({names.CMD_KEY: names.STOP})
        if self._trial.wait(self._grace_s) != 0:
            raise Fault(f"after stop: {self._trial.ended}")

    def ask(self, wanted: List[str], **command: Any) -> Dict[str, Any]:
        """The answer to a command, which must have one of the `wanted` types, if there are any."""
        self._trial.send(command)
        return self._read(wanted, str(command["cmd"]), self._limit_s)

    def _read(self, wanted: List[str], asked: str, limit_s: float) -> Dict[str, Any]:
        if not self._trial.wait_for(lambda: len(self._trial.objects()) > self._read_count, limit_s):
            raise Fault(
                f"{asked} was not answered with {wanted[0] if wanted else 'a line'}; {self._why_silent(limit_s)}"
            )
        answer = self._trial.objects()[self._read_count]
        self._read_count += 1
        if "type" not in answer or (wanted and answer["type"] not in wanted):
            raise Fault(f"{asked} was answered with {str(answer)[:160]}")
        return answer

    def _why_silent(self, limit_s: float) -> str:
        if self._trial.code is None:
            return f"no output in {limit_s:g} s"
        line = self._trial.last_words
        return f"{self._trial.ended}; last line of stderr: {line}" if line else self._trial.ended
