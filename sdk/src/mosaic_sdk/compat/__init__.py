"""What workers of the public MOSAIC import, so that they run unmodified. `gym_gui` (a separate package) re-exports it.

    telemetry.py      TelemetryEmitter: lifecycle lines
    artifacts.py      WorkerAnalyticsManifest and its parts: analytics.json
    paths.py          VAR_ROOT, VAR_TRAINER_DIR …, inside the run's folder
    log_constants.py  log_constant and every LOG_… name
    frames.py         apply_fastlane_environment, tile_frames
    enums.py          SteppingParadigm

New workers use mosaic_sdk itself.
"""
