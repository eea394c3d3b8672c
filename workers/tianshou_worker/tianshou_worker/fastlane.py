"""Frames. The SDK's import hook shows every environment that gymnasium.make creates: there is nothing to do."""
