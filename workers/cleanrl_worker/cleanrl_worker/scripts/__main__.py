"""python -m cleanrl_worker.scripts            list the scripts that come with the worker
python -m cleanrl_worker.scripts path NAME     print the path of one"""

import sys
from collections.abc import Sequence

from cleanrl_worker.scripts import shipped


def main(argv: Sequence[str]) -> int:
    known = {script.name: script for script in shipped()}
    if not argv:
        for script in known.values():
            print(f"{script.name:24} {script.phases} phases {script.total_timesteps:>9,} steps  {script.description}")
        return 0
    if len(argv) == 2 and argv[0] == "path" and argv[1] in known:
        print(known[argv[1]].path)
        return 0
    print(f"There is no such script. Available: {', '.join(known)}.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
