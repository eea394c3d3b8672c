"""The environments of an evaluation behind one interface: Gymnasium, PettingZoo (AEC, parallel), mosaic-multigrid.

choice.py     what a script says about its environment    single.py, turns.py, parallel.py   a Game for each API
making.py     from an id to a Game                        multigrid.py   mosaic-multigrid as a parallel Game
wrapping.py   the wrappers that a script may name         families/      names, keys and texts per environment
stage.py      a Game with its family                      episode.py     one episode, as the host reports it
recorder.py   records episodes                            picture.py     frames as PNG

game = make_game(EnvChoice.parse({"id": "MiniGrid-Empty-8x8-v0"}))
game.reset(3)
outcome = game.step({"agent_0": 2})
"""
