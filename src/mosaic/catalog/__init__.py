"""Which workers exist, in which environment, and the command that starts one."""
