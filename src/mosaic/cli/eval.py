"""`mosaic eval`: evaluate the policy of a run, or play operators against each other on the same seeds."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import connected, host_of
from mosaic.cli.eval_policy import evaluate_policy
from mosaic.cli.eval_script import SCRIPT_OPTIONS, add_script_options, document_of
from mosaic.cli.run import add_run_options, print_submitted, run_options
from mosaic.cli.verb import RUN_HELP, BadUsage, add_verb, count
from mosaic.model.errors import BadConfig

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

SUMMARY = "evaluate a policy, or compare operators on the same seeds"
DETAILS = """\
mosaic eval RUN          the policy that a run has learned, by the run's own worker
mosaic eval FILE         an evaluation script: .yaml, .json, or a .py program that prints one
mosaic eval --env ENV    operators side by side: policies, LLMs, people, random agents
mosaic eval attach RUN   show an evaluation that is running, step it by hand, play in it
mosaic eval compare RUN  compare the results of evaluations"""
EXAMPLES = """
mosaic eval last                              the newest checkpoint of the newest run
mosaic eval 01JCQ --best --episodes 50        the checkpoint with the best evaluation (train with eval_every=…)
mosaic eval crawler --video --seed 7          record videos; use the seeds 7, 8, 9 …
mosaic eval duel.yaml                         a script
mosaic eval --env MiniGrid-Empty-8x8-v0 --operator rl:last --operator random --seeds 0-19
mosaic eval --env FrozenLake-v1 --operator me=human --operator llm:qwen3@http://127.0.0.1:8080/v1 --manual
mosaic eval --env mpe2/simple_v3 --operator random --operator passive --agent agent_0=random
"""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "eval", evaluate, SUMMARY, EXAMPLES, DETAILS)
    parser.add_argument("run", metavar="RUN|FILE", nargs="?", default="", help=f"{RUN_HELP}; or a script file")
    parser.add_argument("settings", metavar="key=value", nargs="*", help="settings for the evaluation of RUN")
    parser.add_argument("--video", nargs="?", const=True, metavar="N", help="record videos: of N episodes per lane")
    parser.add_argument(
        "--episodes", type=count, metavar="N", help="play N episodes (default: the worker's; scripts: 10)"
    )
    policy = parser.add_argument_group("options for RUN")
    policy.add_argument("--best", action="store_true", help="evaluate the best checkpoint instead of the newest")
    policy.add_argument("--checkpoint", default="", metavar="PATH", help="use this checkpoint instead of the newest")
    policy.add_argument("--seed", type=count, metavar="S", help="play episode i with seed S + i (default 1000000)")
    add_script_options(parser.add_argument_group("options for FILE and --env"))
    add_run_options(parser)
    _add_actions(parser)


def _add_actions(parser: Any) -> None:
    """The actions share a word with RUN: a run that is called `attach` or `compare` is named by its id."""
    from mosaic.cli import eval_attach, eval_compare

    eval_attach.add_verbs(parser)
    eval_compare.add_verbs(parser)


def evaluate(args: argparse.Namespace) -> int:
    from mosaic.client.script_file import is_script

    _place_words(args)
    if is_script(args.run) or (not args.run and (args.env or args.operator)):
        return _evaluate_script(args)
    if not args.run:
        raise BadUsage("name a run, a script file, or an environment with --env (see --help)")
    given = [name for name in SCRIPT_OPTIONS if getattr(args, name)]
    if args.env or args.operator:
        raise BadUsage(
            f"name either a run ({args.run}) or an environment with --env; a policy plays as: --operator rl:RUN"
        )
    if given:
        raise BadUsage(f"--{given[0].replace('_', '-')} needs a script file or --env, not a run")
    return evaluate_policy(args)


def _place_words(args: argparse.Namespace) -> None:
    """Sort out `--video`, whose value is optional: in `mosaic eval --video last` the word is the run."""
    words = list(args.settings)
    if isinstance(args.video, str):
        if args.video.isdecimal():
            args.video = int(args.video)
        else:
            words, args.video = [args.video, *words], True
    if not args.run and words and "=" not in words[0]:
        args.run = words.pop(0)
    elif "=" in args.run and (args.env or args.operator):
        words, args.run = [args.run, *words], ""
    args.settings = words


def _evaluate_script(args: argparse.Namespace) -> int:
    from mosaic.catalog.evaluation import MANUAL, SCRIPT, evaluation_config
    from mosaic.client.evaluation import FIRST_COMMAND
    from mosaic.client.script_file import parse_script

    mode = MANUAL if args.manual else SCRIPT
    script = parse_script(document_of(args), mode)
    config = evaluation_config(script, mode, run_options(args), is_remote=bool(host_of(args)))
    if args.dry_run:
        return _print_plan(script.to_dict(), config)
    with connected(args) as client:
        run = _submit(client, config, args)
        if args.manual:
            client.command_run(run.run_id, *FIRST_COMMAND)
        if args.detach:
            print_submitted(run, args)
            return 0
        from mosaic.cli.eval_attach import show

        return show(client, run, args)


def _submit(client: "TrainerClient", config: dict[str, Any], args: argparse.Namespace) -> "Run":
    from mosaic.client.evaluation import for_author

    try:
        return client.submit_run(config, args.idempotency_key)
    except BadConfig as error:
        raise for_author(error) from None


def _print_plan(script: dict[str, Any], config: dict[str, Any]) -> int:
    import json

    json.dump({"script": script, "config": config}, sys.stdout, indent=1)
    print()
    return 0
