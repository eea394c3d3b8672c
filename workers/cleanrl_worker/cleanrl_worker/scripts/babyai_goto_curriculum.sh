#!/usr/bin/env bash
# @description: Curriculum: four BabyAI GoTo levels, then an evaluation on the last and hardest.
# @env_family: babyai
# @phases: 2
# @total_timesteps: 800000
#
# A curriculum_schedule, total_timesteps or seed in the run's config replaces the value here.
set -euo pipefail

LEVEL1_ENV="BabyAI-GoToRedBallNoDists-v0"
LEVEL2_ENV="BabyAI-GoToRedBall-v0"
LEVEL3_ENV="BabyAI-GoToObj-v0"
LEVEL4_ENV="BabyAI-GoToLocal-v0"

phase() { python -m cleanrl_worker.phase "$@"; }

stage() { printf '{"env_id": "%s", "steps": %d}' "$1" "$2"; }

steps=$(phase --get total_timesteps 800000)
quarter=$((steps / 4))
ours="[$(stage $LEVEL1_ENV $quarter), $(stage $LEVEL2_ENV $quarter), $(stage $LEVEL3_ENV $quarter), {\"env_id\": \"$LEVEL4_ENV\"}]"
schedule=$(phase --get curriculum_schedule "$ours")
target=$(phase --get env_id $LEVEL4_ENV)
episodes=$(phase --get eval_episodes 20)

phase 1/2 curriculum algo=ppo env_id="$target" total_timesteps="$steps" mode=train curriculum_schedule="$schedule"
phase 2/2 evaluate algo=ppo env_id="$target" mode=policy_eval policy_path="$MOSAIC_CHECKPOINT_DIR" eval_episodes="$episodes"
