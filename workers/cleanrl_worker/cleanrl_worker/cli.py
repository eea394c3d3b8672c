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
        return tell_plan(plan)
    if args.interactive or config.mode == INTERACTIVE:
        return _serve(config)
    return conduct(lambda: work(config, args.config), emitter())


def refuse_unread_checkpoint(config: CleanRLWorkerConfig) -> None:
    """Ignored, it would look like a training that continues from there."""
    if config.mode == TRAIN and config.policy_path:
        raise ConfigError(
            f"extras.policy_path: mode {TRAIN} starts from scratch and loads no checkpoint. "
            f"Set mode={RESUME} to continue it or mode={POLICY_EVAL} to evaluate it, or leave policy_path out."
        )


def make_plan(config: CleanRLWorkerConfig) -> dict[str, Any]:
    """What the run would do, checked as far as it can be without its libraries."""
    from cleanrl_worker import arguments, registry, upstream

    algorithm = registry.find(config.algo, config.upstream_path)
    plan: dict[str, Any] = {"config": config.to_dict(), "mode": config.mode, "module": algorithm.module}
    if config.policy_path and not os.path.exists(config.policy_path):
        raise ConfigError(f"extras.policy_path: there is no checkpoint {config.policy_path}.")
    if config.mode == POLICY_EVAL:
        plan["evaluation"] = _check_evaluation(config)
    if config.mode != TRAIN:
        _check_direct(config)
        return plan  # the rest is in the checkpoint, which only torch can read
    if config.upstream_path and algorithm.is_ours:
        raise ConfigError(f"extras.upstream_path: {algorithm.name} is MOSAIC's own; the checkout's is ppo_upstream.")
    script = upstream.find_script(algorithm, config.upstream_path)
    values = arguments.resolve(config, script)
    if config.eval_every:
        plan["evaluation"] = _check_settings(config)
    if config.curriculum_schedule:
        plan["curriculum"] = _check_curriculum(config)
    plan.update(script=str(script.path), arguments=values, differs=arguments.differences(values, script))
    return plan


def tell_plan(plan: dict[str, Any]) -> int:
    """Text, not telemetry: a dry run measures nothing."""
    print(f"{plan['config']['algo']} on {plan['config']['env_id']} ({plan['mode']}) can be run. Nothing is run now.")
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

    serve(config)
    return DONE


def _check_evaluation(config: CleanRLWorkerConfig) -> dict[str, Any]:
    from cleanrl_worker.evaluate import Plan

    return dict(vars(Plan.of(config)))


def _check_settings(config: CleanRLWorkerConfig) -> dict[str, Any]:
    from cleanrl_worker.evaluate import settings_of

    return settings_of(config)


def _check_direct(config: CleanRLWorkerConfig) -> None:
    """Which algorithm it is stands in the checkpoint, so any one's hyperparameters may be given."""
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
