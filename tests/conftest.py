import os
import sys
from pathlib import Path

# Some tests fork this process, in which others use gRPC: its handlers around fork() can end the child.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

sys.path.insert(0, str(Path(__file__).parent))
