"""What stands between an environment and an agent: the shape of its observations, and the curriculum."""
