"""See gym_gui.constants.constants_tensorboard."""
