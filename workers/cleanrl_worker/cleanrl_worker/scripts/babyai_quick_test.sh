#!/usr/bin/env bash
# @description: Quick BabyAI test: train ppo, resume it from its checkpoint, evaluate the result.
# @env_family: babyai
# @phases: 3
# @total_timesteps: 50000
#
# The values here are defaults. The run's config (env_id, total_timesteps, seed, extras) overrides them.
set -euo pipefail

PHASE1_ENV="BabyAI-GoToRedBallNoDists-v0"

phase() { python -m cleanrl_worker.phase "$@"; }

env_id=$(phase --get env_id "$PHASE1_ENV")
steps=$(phase --get total_timesteps 50000)
episodes=$(phase --get eval_episodes 20)

phase 1/3 train algo=ppo env_id="$env_id" total_timesteps=$((steps / 2)) mode=train
phase 2/3 continue algo=ppo env_id="$env_id" total_timesteps="$steps" mode=resume_training policy_path="$MOSAIC_CHECKPOINT_DIR"
phase 3/3 evaluate algo=ppo env_id="$env_id" mode=policy_eval policy_path="$MOSAIC_CHECKPOINT_DIR" eval_episodes="$episodes"
