"""README.md, getting started and the how-tos, executed as printed: every command and program, in the order of the page.

Each page has its own scratch MOSAIC_HOME, HOME and working folder, the real daemon, and the workers' environments that
`make test` has built. Trainings of CleanRL and Dreamer are started as written and cancelled once they have measured
something; live views are left with q. A command that is not run says why in its comment; NOT_RUN counts them.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from howto import FRAGMENT, BadPage, Block, Command, blocks_of, commands_of
from lab import Lab
from terminal import Terminal

from mosaic.model.states import RunState

REPO = Path(__file__).parents[2]
PAGES = [REPO / "README.md", REPO / "docs/getting-started.md", *sorted((REPO / "docs/howto").glob("*.md"))]
LANGUAGES = {"bash", "python", "text", "toml", "json", "yaml"}
LONG_S = 300  # one command, with torch or JAX, on a busy machine

GPU, INSTALLS, ELSEWHERE = "needs a GPU", "installs packages", "needs another machine"
SYSTEMD = "needs systemd"
MODEL_SERVER = "needs a model server"
PERSON, INTERRUPTED = "needs a person", "needs an interrupted evaluation"
RECORDED = "needs recorded episodes"
DISPLAY = "needs a display"
SB3 = "needs Stable-Baselines3"
GAMES = "needs the balrog worker"
SEARCH = "needs the search worker"  # test_search.py runs these
EVALUATES = "needs the eval worker and a trained policy"
TRAINS, TRAINED = "trains ten policies", "needs a trained agent"
SLURM, RAY = "needs a Slurm cluster", "needs a Ray cluster"  # tests/machines runs these
NOT_RUN = {
    "README.md": {INSTALLS: 4, MODEL_SERVER: 2, DISPLAY: 1},
    "asking.md": {},
    "balrog.md": {INSTALLS: 1, GAMES: 3, MODEL_SERVER: 2},
    "cleanrl.md": {INSTALLS: 1},
    "cleanrl-modes.md": {},
    "command-line.md": {ELSEWHERE: 1},
    "commands.md": {},
    "comparing.md": {EVALUATES: 1},
    "comparing-runs.md": {},
    "dreamer.md": {INSTALLS: 2, GPU: 3, SLURM: 1, RAY: 1, ELSEWHERE: 3, TRAINED: 2},
    "dreamer-agent.md": {GPU: 11, "compiles for minutes": 2, "takes minutes": 1},
    "dreamer-envs.md": {},
    "evaluation-envs.md": {RECORDED: 1},
    "evaluation-script.md": {},
    "evaluate.md": {INSTALLS: 1, INTERRUPTED: 1, PERSON: 4},
    "experiments.md": {TRAINS: 3},
    "exporting.md": {},
    "frames.md": {ELSEWHERE: 1},
    "getting-started.md": {INSTALLS: 7},
    "importing.md": {},
    "install.md": {INSTALLS: 5, SYSTEMD: 3},  # test_installed.py and test_unit.py run these
    "llm-operators.md": {INSTALLS: 1, MODEL_SERVER: 1},
    "new-worker.md": {},
    "observe.md": {SB3: 2},
    "operators.md": {},
    "python-client.md": {},
    "scripts.md": {INSTALLS: 4},
    "search.md": {INSTALLS: 1, SEARCH: 6},
    "slurm.md": {SLURM: 10},
    "ray-cluster.md": {RAY: 13},
    "stable-baselines3.md": {INSTALLS: 8},
    "ray.md": {INSTALLS: 6},
    "telemetry-lines.md": {},
    "tianshou.md": {INSTALLS: 5},
    "window-curves.md": {},
    "window-frames.md": {},
    "window-live.md": {},
    "window-operators.md": {},
    "window-runs.md": {},
    "window-workers.md": {},
    "window.md": {INSTALLS: 1, DISPLAY: 4},
    "window-new-run.md": {},
    "window-analytics.md": {},
    "xuance.md": {INSTALLS: 5},
}
FRAGMENTS = {
    "commands.md": 1,
    "dreamer-agent.md": 1,
    "dreamer-envs.md": 1,
    "evaluation-envs.md": 1,
    "new-worker.md": 11,
}
ENVIRONMENTS = ("cleanrl", "dreamer")


def by_name(page):
    return page.name


def shell_commands(page):
    return [command for block in blocks_of(page) if block.is_shell for command in commands_of(block)]


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_command_that_is_not_run_has_a_reason_and_is_counted(page):
    commands, blocks = shell_commands(page), blocks_of(page)

    assert dict(Counter(command.not_run for command in commands if command.not_run)) == NOT_RUN[page.name]
    assert sum(block.name == FRAGMENT for block in blocks) == FRAGMENTS.get(page.name, 0)


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_a_block_that_is_only_shown_contains_no_command(page):
    blocks = blocks_of(page)

    assert [block.line for block in blocks if block.language not in LANGUAGES] == []
    hidden = [
        line for line in page.read_text().splitlines() if line.startswith(("    mosaic ", "    python ", "    make "))
    ]
    assert [line for line in hidden if not any(line in block.text for block in blocks)] == []
    shown = [line for block in blocks if block.language == "text" for line in block.text.splitlines()]
    assert [line for line in shown if line.startswith("mosaic ") and "<TAB>" not in line] == []


def test_a_block_is_read_as_a_shell_would():
    text = "# above; not run in tests: needs a GPU\na 'x\n # y' \\\n  z   # behind, exit code 2\n\nb \"it's # c\"\n"

    first, second = commands_of(Block("bash", "", text, 10))

    assert (first.words, first.not_run, first.exit_codes) == (["a", "x\n # y", "z"], "needs a GPU", {2})
    assert (second.words, second.comment, second.line) == (["b", "it's # c"], "", 16)
    with pytest.raises(BadPage, match="does not end"):
        commands_of(Block("bash", "", "a 'b\n", 1))


def test_a_reason_behind_the_fence_holds_for_the_whole_block():
    block = Block("bash", "not run in tests: needs a GPU", "a\nb  # exit code 2\n", 1)

    assert [command.not_run for command in commands_of(block)] == ["needs a GPU", "needs a GPU"]
    assert (block.is_shell, block.is_file) == (True, False)
    assert Block("bash", "some/file.sh", "a\n", 1).is_file


def steps_of(page):
    """What a reader does: files to write, programs and commands to execute, each with its place."""
    for block in blocks_of(page):
        if block.is_file or block.is_program:
            yield block, f"{page.name}:{block.line}"
        elif block.is_shell:
            for command in commands_of(block):
                if not command.not_run:
                    yield command, f"{page.name}:{command.line}: {command.text}"


def is_background_training(step):
    """Whether it leaves a training of a real library behind."""
    return isinstance(step, Command) and "--detach" in step.words and bool(set(ENVIRONMENTS) & set(step.words))


class Reader:
    """A person who types what a page says, with their own working folder and home."""

    def __init__(self, lab, folder):
        self.lab, self.folder = lab, folder
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        own = {"MOSAIC_HOME": str(lab.root.path), "HOME": str(folder), "SHELL": "/bin/bash", "PATH": path}
        # Keep away from the developer's own shell, daemon and caches.
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "ZDOTDIR", "MOSAIC_"))}
        self.env = {**kept, **own}

    def reads(self, page):
        steps = list(steps_of(page))
        for number, (act, place) in enumerate(steps):
            if isinstance(act, Command):
                self.types(act, place)
            elif act.is_file:
                self.writes(act)
            else:
                self.executes([sys.executable, "-c", act.text], {0}, place)
            if any(is_background_training(done) for done, _ in steps[: number + 1]):
                self.cancels_what_is_not_used_again("\n".join(later.text for later, _ in steps[number + 1 :]))

    def cancels_what_is_not_used_again(self, rest):
        """A training in the background would go on for minutes beside commands that do not need it."""
        for place, run in enumerate(self.lab.client.list_runs().runs):
            names = [re.escape(run.name), "last"] if place == 0 else [re.escape(run.name)]  # the newest is `last`
            is_used = re.search(rf"(?<![\w=-])({'|'.join(names)})\b", rest)
            if run.worker_name in ENVIRONMENTS and not run.state.is_over and not is_used:
                self.lab.client.cancel_run(run.run_id)

    def writes(self, block):
        path = self.folder / block.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)

    def types(self, command, place):
        if is_live_view(command.words):
            self.looks(command, place)
        elif self.is_long_training(command.words):
            self.trains(command, place)
        else:
            self.executes(["bash", "-c", command.text], command.exit_codes, place)

    def is_long_training(self, words):
        """Whether it follows a training of a real library."""
        if {"--detach", "--help"} & set(words):
            return False
        if words[:2] == ["mosaic", "resume"]:
            return self.lab.client.get_run(words[2]).worker_name in ENVIRONMENTS
        return words[:2] == ["mosaic", "run"] and bool(set(ENVIRONMENTS) & set(words))

    def executes(self, argv, codes, place):
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=self.env,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LONG_S,
        )
        assert done.returncode in codes, f"{place}: exit code {done.returncode}\n{done.stdout[-3000:]}"

    def looks(self, command, place):
        """Open a live view, wait until it shows something, and leave it with q."""
        if command.words[:2] == ["mosaic", "frames"]:
            # The view gives up after 10 s, and a library may import for longer on a busy machine.
            run = self.lab.client.get_run(command.words[2])
            self.lab.wait_for(run, RunState.EXECUTING, timeout_s=LONG_S)
        line = f"cd {shlex.quote(str(self.folder))} && {command.text}"
        terminal = Terminal(["bash", "-c", line], self.env, columns=120, rows=40)
        try:
            terminal.waits_for("fps" if "frames" in command.words else "MOSAIC")
            terminal.types("q")
            code, output = terminal.ends()
        finally:
            terminal.close()
        assert code in command.exit_codes, f"{place}: exit code {code}\n{output}"

    def trains(self, command, place):
        """Start a training; cancel it once it has measured something (and, if it evaluates, has a best checkpoint)."""
        before = {run.run_id for run in self.lab.client.list_runs().runs}
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                ["bash", "-c", command.text],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                cancelled = self.cancels_when_far_enough(process, command, before)
                code = process.wait(LONG_S)
            finally:
                process.kill()
                process.wait()
            output.seek(0)
            expected = {1} if cancelled else command.exit_codes
            assert code in expected, f"{place}: exit code {code}\n{output.read()[-3000:]}"

    def cancels_when_far_enough(self, process, command, before):
        deadline = time.monotonic() + LONG_S
        while process.poll() is None and time.monotonic() < deadline:
            new = [run for run in self.lab.client.list_runs().runs if run.run_id not in before]
            if new and is_far_enough(new[0], command):
                self.lab.client.cancel_run(new[0].run_id)
                return self.lab.wait_until_over(new[0], LONG_S).state is RunState.CANCELLED
            time.sleep(0.2)
        return False


def is_far_enough(run, command):
    if run.state is not RunState.EXECUTING:
        return False
    return "eval_every=" not in command.text or Path(run.run_dir, "checkpoints/best/best.json").exists()


def uses(name, words):
    """Whether a command starts this worker. The worker `eval` plays operators; `mosaic eval RUN` does not need it."""
    return name in words if name != "eval" else words[:2] == ["mosaic", "eval"] and "--operator" in words


def is_live_view(words):
    if words[:2] == ["mosaic", "watch"]:
        return ">" not in words
    return words[:2] == ["mosaic", "frames"] and not {"--save", "--clip", "--json"} & set(words)


@pytest.fixture
def reader(home, tmp_path):
    (home / "envs").mkdir()
    for name in (*ENVIRONMENTS, "eval"):
        if (REPO / f".venv-{name}/.ready").exists():
            (home / "envs" / name).symlink_to(REPO / f".venv-{name}")
    lab = Lab(home)
    yield Reader(lab, tmp_path)
    lab.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_command_and_program_of_a_page_works_as_printed(page, reader):
    for name in (*ENVIRONMENTS, "eval"):
        used = any(uses(name, command.words) for command in shell_commands(page) if not command.not_run)
        if used and not (REPO / f".venv-{name}/.ready").exists():
            pytest.skip(f"the worker's environment is missing: make .venv-{name}/.ready")

    reader.reads(page)


def test_a_command_that_does_not_work_is_found(reader, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```bash\nmosaic runs\nmosaic show unknown    # a comment\n```\n")

    with pytest.raises(AssertionError, match=r"page\.md:3: mosaic show unknown .*\n.*exit code 1"):
        reader.reads(page)
