"""python -m llm_worker.cli --config FILE --interactive"""

import sys
from collections.abc import Sequence

from mosaic_sdk.cli import print_dry_run, refuse, standard_parser
from mosaic_sdk.config import ConfigError, load_config

from llm_worker.config import LlmConfig

ONLY_OPERATOR = (
    "The LLM worker has nothing to train: it plays as an operator. Evaluate it with: "
    "mosaic eval --env ENV --operator llm:MODEL"
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("llm_worker", "Asks a language model for its actions.")
    args = parser.parse_args(argv)
    try:
        config = LlmConfig.from_dict(load_config(args.config))
        if not args.dry_run and not args.interactive:
            raise ConfigError(ONLY_OPERATOR)
    except ConfigError as error:
        return refuse(error)
    return print_dry_run(config.to_dict()) if args.dry_run else play(config)


def play(config: LlmConfig) -> int:
    from mosaic_sdk.interactive import serve

    from llm_worker.runtime import LlmPlayer

    return serve(lambda: LlmPlayer(config), run_id=config.run_id)


if __name__ == "__main__":
    sys.exit(main())
