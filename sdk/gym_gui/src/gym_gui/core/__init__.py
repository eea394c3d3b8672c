"""See gym_gui.core.worker."""
