"""See gym_gui.config.paths."""
