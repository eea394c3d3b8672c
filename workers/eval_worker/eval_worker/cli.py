"""python -m eval_worker --config FILE [--dry-run]       the conductor: one evaluation
python -m eval_worker --host FILE                        an env host: one environment, driven over pipes
python -m eval_worker --export-demonstrations FOLDER     the recorded episodes of a run's folder, as Minari datasets
"""

import sys
from collections.abc import Sequence

from mosaic_sdk import emit
from mosaic_sdk.cli import conduct, print_dry_run, refuse, standard_parser
from mosaic_sdk.config import ConfigError, load_config

from eval_worker.config import EvalConfig

HOST = "--host"
EXPORT = "--export-demonstrations"


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == [HOST]:
        return host(arguments[1:])
    if arguments[:1] == [EXPORT]:
        return export(arguments[1:])
    return evaluate(arguments)


def evaluate(arguments: Sequence[str]) -> int:
    parser = standard_parser("eval_worker", "Evaluates operators side by side on the same seeds.")
    args = parser.parse_args(arguments)
    if args.interactive:
        parser.error("this worker has no interactive mode; its mode `manual` takes commands")
    try:
        config = EvalConfig.from_dict(load_config(args.config))
    except ConfigError as error:
        return refuse(error)
    if args.dry_run:
        return print_dry_run(config.to_dict())
    from eval_worker.runtime import EvalRuntime

    emit.stdout().run_id = config.run_id
    return conduct(lambda: EvalRuntime(config).run())


def host(arguments: Sequence[str]) -> int:
    """An env host: it imports the environments' libraries, which the conductor never does."""
    from eval_worker.host import main as serve_env

    return serve_env(arguments)


def export(arguments: Sequence[str]) -> int:
    """Also for a run that was killed: its episodes are files of their own."""
    from eval_worker.minari_export import main as export_demonstrations

    return export_demonstrations(arguments)


if __name__ == "__main__":
    sys.exit(main())
