"""Frames: a game is shown as a Gymnasium environment would be, if it has a picture."""

from typing import cast

from balrog_worker.games.game import Game


def shown(game: Game) -> Game:
    """The game, in a wrapper that publishes its pictures while someone watches."""
    if game.render_mode is None:
        return game
    from mosaic_sdk.fastlane import maybe_wrap_env

    return cast(Game, maybe_wrap_env(game))
