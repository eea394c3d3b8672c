"""`mosaic compare`: groups of runs over seeds, with intervals, and a sentence that says how sure the difference is."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import connected, host_of
from mosaic.cli.verb import BadUsage, add_json, add_verb, count
from mosaic.model.errors import MosaicError
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import TrainerClient
    from mosaic.present.compared_groups import RunGroup
    from mosaic.present.compared_runs import Details
    from mosaic.present.group_comparison import GroupComparison
    from mosaic.stats.scales import Scale

EXAMPLES = """
mosaic compare cartpole                            the groups of one experiment: which settings are better?
mosaic compare ppo dqn                             two experiments, or runs with these names
mosaic compare cartpole --by learning_rate         all runs of an experiment, by one of its settings
mosaic compare atari --where env_id~Pong           only the runs of one environment
mosaic compare cartpole --metric losses/value --last 10%
mosaic compare cartpole --auc                      the area under the curve instead of the end
mosaic compare cartpole --at-step 20000
mosaic compare cartpole --save curves.pdf --report report.html
mosaic compare cartpole --json
"""
DETAILS = """\
GROUP is an experiment, a name that several runs have, or a single run. Runs with equal settings but for the seed are
one group; --by divides all of them by settings instead. Each run counts with one number, by default the mean return of
its newest evaluation or of its newest 100 episodes. Runs that did not finish are named and left out."""
REMOTE = "does not work with"


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "compare", compare, "compare groups of runs over their seeds", EXAMPLES, DETAILS)
    parser.add_argument("groups", metavar="GROUP", nargs="+", help="an experiment, a name of runs, or a run")
    parser.add_argument("--experiment", action="store_true", help="every GROUP is the name of an experiment")
    parser.add_argument("--by", action="append", default=[], metavar="SETTING", help="divide the runs by this setting")
    parser.add_argument("--where", default="", metavar="CONDITION", help="compare only runs that meet this condition")
    _add_value_options(parser)
    _add_curve_options(parser)
    output = parser.add_mutually_exclusive_group()
    add_json(output)  # type: ignore[arg-type]
    output.add_argument("--csv", action="store_true", help="print the table as CSV")


def _add_value_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--metric", default="", help="the metric to compare; default: the return")
    value = parser.add_mutually_exclusive_group()
    value.add_argument("--last", default="", metavar="N|N%", help="mean of the newest N values, or N %% of the steps")
    value.add_argument("--auc", action="store_true", help="the area under the curve, divided by its steps")
    parser.add_argument("--at-step", type=count, metavar="STEP", help="use only values up to this step")
    parser.add_argument("--statistic", choices=("iqm", "mean", "median"), default="iqm", help="default: %(default)s")
    parser.add_argument("--better", choices=("higher", "lower"), help="which values are better, if it is not a return")
    parser.add_argument(
        "--normalise",
        nargs="?",
        const="",
        action="append",
        metavar="ENV=LOW:HIGH",
        help="compare on a scale from 0 to 1, which is known for Atari, CartPole and others, or given here",
    )
    parser.add_argument(
        "--unfinished", action="store_true", help="use runs that failed, were cancelled or are live, as far as they got"
    )


def _add_curve_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--band", choices=("bootstrap", "quartiles"), default="bootstrap", help="default: %(default)s")
    parser.add_argument("--longest", action="store_true", help="draw curves beyond the end of the shortest run")
    parser.add_argument("--save", metavar="FILE", help="save the curves as .svg, .png or .pdf (needs matplotlib)")
    parser.add_argument("--report", metavar="FILE", help="write everything to one HTML page")


def compare(args: argparse.Namespace) -> int:
    from mosaic.cli.compare_figure import check_figure, save_figure

    if args.save:
        check_figure(args.save)  # before the work
    with connected(args) as client:
        found, groups, details = comparison(client, args)
        if args.report:
            _write_report(args, found, groups, details)
    if args.save:
        save_figure(found, args.save)
    _print(args, found)
    return 0


def comparison(client: "TrainerClient", args: argparse.Namespace) -> "tuple[GroupComparison, list[RunGroup], Details]":
    from mosaic.present.compared_groups import RunGroup, divide_runs
    from mosaic.present.compared_runs import Details, choose_runs
    from mosaic.present.compared_samples import SampleReader, common_metric, names_reader, why_left_out, with_areas
    from mosaic.present.compared_value import better_for, reading_for
    from mosaic.present.group_comparison import Options, compare_groups

    details = Details(client)
    chosen = choose_runs(client, args.groups, args.experiment, args.where)
    groups = divide_runs(chosen, args.by, details.of)
    _refuse_one(groups)
    kept = [RunGroup(g.label, tuple(r for r in g.runs if not why_left_out(r, args.unfinished))) for g in groups]
    metric = common_metric([group for group in kept if group.runs], names_reader(client), args.metric)
    reading = reading_for(metric, args.last, args.auc, args.at_step)
    reader = SampleReader(client, metric, reading)
    samples = [reader.read(group, args.unfinished) for group in groups]
    if args.auc:
        samples = with_areas(samples, args.at_step)
    scales = _scales(args.normalise, groups)
    better = args.better or better_for(metric)
    options = Options(args.statistic, better, args.band, args.longest, scales)
    return compare_groups(samples, metric, reading, options), groups, details


def _refuse_one(groups: "list[RunGroup]") -> None:
    if len(groups) == 1 and len(groups[0].runs) == 1:
        raise MosaicError(f"There is only one run to compare: {groups[0].label}. Name others, or an experiment.")


def _scales(wishes: "list[str] | None", groups: "list[RunGroup]") -> "dict[str, Scale] | None":
    """None: values are compared as they are."""
    from mosaic.stats.scales import Scale, scale_of

    if wishes is None:
        return None
    envs = {run.env_id for group in groups for run in group.runs if run.env_id}
    known = {env: scale for env in envs if (scale := scale_of(env))}
    for wish in filter(None, wishes):
        env, _, edges = wish.rpartition("=")
        try:
            low, high = map(float, edges.split(":"))
        except ValueError:
            low = high = 0.0
        if not low < high:
            raise BadUsage(f"--normalise {wish}: write ENV=LOW:HIGH, for instance CartPole-v1=0:500")
        if env and env not in envs:
            raise BadUsage(f"--normalise {wish}: no run has the environment '{printable(env)}'")
        known |= {each: Scale(low, high, "as given") for each in ([env] if env else envs)}
    return known


def _write_report(
    args: argparse.Namespace, found: "GroupComparison", groups: "list[RunGroup]", details: "Details"
) -> None:
    from mosaic.exports.target import overwritten_file
    from mosaic.present.compare_report import render_report

    runs = {group.label: [details.of(run) for run in group.runs] for group in groups}
    page = render_report(found, runs, ["mosaic", *sys.argv[1:]], is_local=not host_of(args))
    with overwritten_file(args.report) as place:
        place.write_text(page, encoding="utf-8")


def _print(args: argparse.Namespace, found: "GroupComparison") -> None:
    from mosaic.cli.compare_table import csv_text, render

    if args.json:
        document: dict[str, Any] = found.to_dict()
        print(json.dumps(document, indent=1))
    elif args.csv:
        print(csv_text(found), end="")
    else:
        print(render(found))
    for path in filter(None, (args.save, args.report)):
        print(f"Wrote {path}", file=sys.stderr)
