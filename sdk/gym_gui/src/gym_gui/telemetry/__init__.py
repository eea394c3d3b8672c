"""See gym_gui.telemetry.semconv."""
