"""Operators: an operator makes the decisions of one agent. An RL policy, an LLM, a person, chance.

    operator.py                         the interface
    builtin.py                          random and passive
    served.py, child.py, process.py     an operator as a process: inside it, and from outside
    spaces.py, arrays.py, digest.py     what an operator and an environment exchange
    script.py, seeds.py, …              the evaluation script

    from mosaic_sdk.operators import Operator, StepResult
    from mosaic_sdk.operators.served import serve_operator

Standard library only.
"""

from mosaic_sdk.operators.operator import Agent, Decision, Operator, OperatorError, StepResult

__all__ = ["Agent", "Decision", "Operator", "OperatorError", "StepResult"]
