"""python -m cleanrl_worker.cli --config FILE [--dry-run] [--interactive]"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.cli import DONE, conduct, refuse, standard_parser
from mosaic_sdk.config import ConfigError

from cleanrl_worker.config import INTERACTIVE, POLICY_EVAL, RESUME, TRAIN, CleanRLWorkerConfig
from cleanrl_worker.phase import emitter


def main(argv: Sequence[str] | None = None) -> int:
    parser = standard_parser("cleanrl_worker", "Runs CleanRL's scripts, unmodified, under MOSAIC.")
    args = parser.parse_args(argv)
    try:
        config = CleanRLWorkerConfig.load(args.config)
        plan = make_plan(config)
        if not args.interactive:
            refuse_unread_checkpoint(config)
    except ConfigError as error:
        return refuse(error, emitter())
    emit.stdout().run_id = config.run_id
    if args.dry_run:
        return print_plan(plan)
    if args.interactive or config.mode == INTERACTIVE:
        return _serve(config)
    return conduct(lambda: work(config, args.config), emitter())


def refuse_unread_checkpoint(config: CleanRLWorkerConfig) -> None:
    """ConfigError for a checkpoint that would be ignored: the training would seem to continue from it."""
    if config.mode == TRAIN and config.policy_path:
        raise ConfigError(
            f"extras.policy_path: mode {TRAIN} starts from scratch and loads no checkpoint. "
            f"Set mode={RESUME} to continue it or mode={POLICY_EVAL} to evaluate it, or remove policy_path."
        )


def make_plan(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """What the run would do, checked as far as possible without importing its libraries."""
    from cleanrl_worker import arguments, registry, upstream

    algorithm = registry.find(config.algo, config.upstream_path)
    plan: dict[str, Any] = {"config": config.to_dict(), "mode": config.mode, "module": algorithm.module}
    if config.policy_path and not os.path.exists(config.policy_path):
        raise ConfigError(f"extras.policy_path: there is no checkpoint {config.policy_path}.")
    if config.mode == POLICY_EVAL or config.eval_every:
        plan["evaluation"] = {name: value for name, value in config.flat().items() if name.startswith("eval_")}
    if config.mode != TRAIN:
        _check_direct(config)
        return plan  # only torch can read the rest, which is in the checkpoint
    if config.upstream_path and algorithm.is_ours:
        raise ConfigError(
            f"extras.upstream_path: {algorithm.name} is MOSAIC's own; the checkout's version is ppo_upstream."
        )
    script = upstream.find_script(algorithm, config.upstream_path)
    values = arguments.resolve(config, script)
    if config.curriculum_schedule:
        plan["curriculum"] = _check_curriculum(config)
    plan.update(script=str(script.path), arguments=values, differs=arguments.differences(values, script))
    return plan


def print_plan(plan: dict[str, Any]) -> int:
    """Print the plan as text, not as telemetry: a dry run measures nothing."""
    print(f"Dry run: {plan['config']['algo']} on {plan['config']['env_id']} ({plan['mode']}) can be run.")
    if "script" in plan:
        print(f"script: {plan['script']}")
        print("differs from the script's own defaults:", json.dumps(plan["differs"], default=str))
    print("resolved:", json.dumps(plan, default=str))
    return DONE


def work(config: CleanRLWorkerConfig, config_file: str) -> dict[str, Any]:
    if config.mode == POLICY_EVAL:
        from cleanrl_worker.launcher import silence_imports

        silence_imports()
        from cleanrl_worker.evaluate import evaluate

        return dict(evaluate(config))
    from cleanrl_worker.runtime import CleanRLWorkerRuntime

    return CleanRLWorkerRuntime(config, config_file).run()


def _serve(config: CleanRLWorkerConfig) -> int:
    from cleanrl_worker.interactive import serve

    return serve(config)


def _check_direct(config: CleanRLWorkerConfig) -> None:
    """The checkpoint determines the algorithm, so the hyperparameters of any algorithm are accepted."""
    if not config.direct_params or config.upstream_path:
        return
    from cleanrl_worker import arguments
    from cleanrl_worker.registry import ALGORITHMS
    from cleanrl_worker.schema import hyperparameters

    arguments.require_known(config, {flag for name in ALGORITHMS for flag in hyperparameters(name)})


def _check_curriculum(config: CleanRLWorkerConfig) -> Any:
    from cleanrl_worker.wrappers.curriculum import check_schedule

    if config.algo != "ppo":
        raise ConfigError(f"extras.curriculum_schedule: curriculum training uses ppo, not {config.algo}.")
    return check_schedule(config.curriculum_schedule)


if __name__ == "__main__":
    sys.exit(main())
