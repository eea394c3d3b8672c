"""See gym_gui.logging_config.helpers and gym_gui.logging_config.log_constants."""
