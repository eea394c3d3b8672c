"""What each command does. The answer to every command is the line `command_done`."""

from collections.abc import Callable, Mapping

from eval_worker.commands import COMMANDS, CommandRefused, count_of, lane_of, lanes_of, rate_of, seed_of
from eval_worker.conductor import NOBODY, OVER, Command, Conductor, Steps
from eval_worker.desk import ActionRefused
from eval_worker.lane import Lane
from eval_worker.telemetry import PAUSED, PLAYING, WAITING

DEFAULT_RATE = 5.0
_AFTER_THE_TICK = ("start", "step", "reset")  # they begin something in the lanes, which may be at work


class Orders:
    """Called in the conductor's thread with each command, and with None when there will be no more."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._is_obeying = False
        self._do: Mapping[str, Callable[[Command], str | None]] = {
            "start": self._start,
            "step": self._step,
            "play": self._play,
            "pause": self._pause,
            "reset": self._reset,
            "act": self._act,
            "finish": self._finish,
        }

    def __call__(self, command: Command | None) -> None:
        if command is None:
            self._end_of_input()
        elif self._must_wait(command):
            self._conductor.deferred.append(command)
        else:
            self.execute(command)

    def execute(self, command: Command) -> None:
        """Execute a command now, and answer it."""
        more = {"request": command.get("request")} if command.get("cmd") == "act" else {}
        was_obeying, self._is_obeying = self._is_obeying, True
        try:
            message = self._known(command)(command)
        except (CommandRefused, ActionRefused) as error:
            self._conductor.telemetry.answered(command, False, str(error), more)
            return
        finally:
            self._is_obeying = was_obeying
        if message is not None:
            self._conductor.telemetry.answered(command, True, message, more)

    def _known(self, command: Command) -> Callable[[Command], str | None]:
        do = self._do.get(str(command.get("cmd")))
        if do is None:
            raise CommandRefused(
                f"cmd: there is no command {command.get('cmd')!r}. Choose from: {', '.join(COMMANDS)}."
            )
        return do

    def _must_wait(self, command: Command) -> bool:
        """Whether it is executed after what is in progress: another command, or a tick. Later commands stay behind it,
        but not `act`, for which the tick may be waiting."""
        conductor, cmd = self._conductor, command.get("cmd")
        if cmd == "act":
            return False
        if not (conductor.is_busy or conductor.steps or self._is_obeying):
            return bool(conductor.deferred)  # between two of them
        if self._is_obeying or (conductor.steps and not conductor.steps.has_begun):
            return True
        if conductor.ticks.desk.open_questions() and cmd in ("step", "finish"):
            return False  # step is refused and finish ends the waiting: neither can wait for a person
        if cmd == "reset" and conductor.is_manual and not self._interrupt(command):
            return False
        return bool(conductor.deferred) or cmd in _AFTER_THE_TICK

    def _interrupt(self, command: Command) -> bool:
        """End the waiting for people in lanes that are reset; False if the command will be refused."""
        try:
            lanes, _ = lanes_of(command, self._conductor.lanes), seed_of(command)
        except CommandRefused:
            return False
        self._conductor.ticks.desk.interrupt(lane.index for lane in lanes)
        return True

    def _start(self, command: Command) -> str:
        conductor = self._conductor
        self._refuse_in_script(command)
        lanes = [lane for lane in conductor.lanes if lane.episode is None and lane.has_more]
        if not lanes:
            raise CommandRefused("start: every lane has an episode, or no seed left. Send step, play or reset.")
        for lane in lanes:
            lane.wake()
        conductor.begin(lanes)
        if conductor.state == WAITING:
            conductor.change(PAUSED)
        return f"{len(lanes)} of {len(conductor.lanes)} lanes are ready."

    def _step(self, command: Command) -> None:
        conductor = self._conductor
        lanes, count = lanes_of(command, conductor.lanes), count_of(command)
        if conductor.state == PLAYING:
            raise CommandRefused("step: the lanes are playing. Send pause first.")
        if conductor.steps is not None:
            raise CommandRefused("step: an earlier step is not over; it waits for a person's action.")
        self._refuse_idle(lanes, "step")
        conductor.steps = Steps(command, lanes, count)

    def _play(self, command: Command) -> str:
        conductor = self._conductor
        rate = rate_of(command, conductor.pace or (DEFAULT_RATE if conductor.is_manual else 0.0))
        self._refuse_idle(conductor.lanes, "play")
        conductor.pace = rate
        conductor.change(PLAYING)
        return f"{rate:g} steps per second." if rate else "As fast as possible."

    def _pause(self, command: Command) -> str:
        conductor = self._conductor
        if conductor.steps is not None:
            conductor.stop_steps("Stopped by pause.")
        elif conductor.state != PLAYING:
            raise CommandRefused("pause: the lanes are not playing.")
        conductor.change(PAUSED)
        return ""

    def _reset(self, command: Command) -> str:
        conductor = self._conductor
        self._refuse_in_script(command)
        lanes, seed = lanes_of(command, conductor.lanes), seed_of(command)
        for lane in lanes:
            if lane.episode is not None:
                conductor.logbook.reset(lane)
            lane.restart(seed)
        conductor.begin(lanes)
        if conductor.state == WAITING:
            conductor.change(PAUSED)
        return f"{len(lanes)} of {len(conductor.lanes)} lanes are ready."

    def _act(self, command: Command) -> str:
        conductor, request = self._conductor, command.get("request")
        lane = lane_of(command.get("lane"), conductor.lanes, "lane")
        if not isinstance(request, int) or isinstance(request, bool):
            raise CommandRefused(f"request: must be the number of the request, not {request!r}.")
        if "action" not in command:
            raise CommandRefused("action is missing.")
        question = conductor.ticks.desk.answer(lane.index, command.get("agent_id"), request, command["action"])
        conductor.logbook.acted(lane, question.step_index, question.agent_id, question.action)
        return ""

    def _finish(self, command: Command) -> str:
        self._end()
        return ""

    def _end_of_input(self) -> None:
        """Nobody can send commands any more. A script needs none, unless people play in it."""
        self._conductor.ticks.desk.close(NOBODY)
        if self._conductor.is_manual:
            self._end()

    def _end(self) -> None:
        conductor = self._conductor
        conductor.is_ending = True
        conductor.stop_steps(OVER)
        while conductor.deferred:
            conductor.telemetry.answered(conductor.deferred.popleft(), False, OVER, {})
        conductor.ticks.desk.interrupt(lane.index for lane in conductor.lanes)

    def _refuse_idle(self, lanes: list[Lane], cmd: str) -> None:
        conductor = self._conductor
        if conductor.state == WAITING and not any(lane.can_play for lane in lanes):
            raise CommandRefused(f"{cmd}: no lane has an episode. Send start or reset first.")
        if conductor.is_manual and conductor.state == WAITING and not any(lane.episode for lane in conductor.lanes):
            raise CommandRefused(f"{cmd}: the lanes have not been started. Send start first.")
        if not any(lane.can_play for lane in lanes):
            names = ", ".join(lane.name for lane in lanes)
            raise CommandRefused(f"{cmd}: the episode of {names} is over. Send start for the next seed, or reset.")

    def _refuse_in_script(self, command: Command) -> None:
        if not self._conductor.is_manual:
            raise CommandRefused(f"{command['cmd']}: this evaluation follows its script. Use manual mode for it.")
