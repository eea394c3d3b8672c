"""Exporting a checkpoint for other people: what `mosaic model export` starts in the worker's own environment.

    # acme_worker/export.py, named by `export="acme_worker.export"` of schema_of
    def export(checkpoint: Checkpoint, folder: str) -> Exported:
        weights = torch.load(checkpoint.path, weights_only=True)      # never unpickle more than weights
        arrays = {name: tensor.numpy() for name, tensor in weights.items()}
        write_safetensors(os.path.join(folder, WEIGHTS), arrays)
        return Exported("acme", {WEIGHTS: "the weights of the policy"}, usage="…", left_out=("the optimizer",))

    if __name__ == "__main__":
        sys.exit(run_export(export))

MOSAIC runs `python -m acme_worker.export CHECKPOINT FOLDER` and reads what export.json in FOLDER says.

A safetensors file is 8 bytes (the header's length, little-endian), a header in JSON, and the arrays' bytes:

    {"__metadata__": {"format": "pt"}, "actor.0.weight": {"dtype": "F32", "shape": [64, 4], "data_offsets": [0, 1024]}}
"""

import json
import os
import struct
import sys
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from mosaic_sdk.checkpoints import Checkpoint, read
from mosaic_sdk.config import ConfigError
from mosaic_sdk.files import atomic_file, write_json
from mosaic_sdk.names import EXPORT_FILE

WEIGHTS = "model.safetensors"
VERSION = 1
_ALIGNMENT = 8
_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}


class Exported(NamedTuple):
    """What a worker wrote, for the model card."""

    library: str  # `library_name` on the Hub: "stable-baselines3", "cleanrl"
    files: Mapping[str, str]  # each file in the folder, and what it is
    usage: str = ""  # Python code that loads it
    left_out: Sequence[str] = ()  # parts of the checkpoint that are not in the files
    algo: str = ""  # if the run's settings do not say it


class Raw(NamedTuple):
    """An array that numpy cannot hold, such as torch's bfloat16: its dtype by name, its shape, its bytes."""

    dtype: str
    shape: Tuple[int, ...]
    data: bytes


def write_safetensors(path: str, arrays: Mapping[str, Any], metadata: Optional[Mapping[str, str]] = None) -> None:
    """Write numpy arrays, or `Raw` ones, atomically. ValueError for a dtype that the format does not have."""
    header: Dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, array in arrays.items():
        dtype, shape, size = _describe(name, array)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with atomic_file(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.data if isinstance(array, Raw) else _bytes(array))


def flat(tree: Any, prefix: str = "") -> Dict[str, Any]:
    """The arrays in nested dicts and lists, by their dotted names. Other values are left out."""
    if isinstance(tree, Mapping):
        parts = [(str(key), value) for key, value in tree.items()]
    elif isinstance(tree, (list, tuple)) and not isinstance(tree, Raw):
        parts = [(str(number), value) for number, value in enumerate(tree)]
    else:
        return {prefix: tree} if isinstance(tree, Raw) or hasattr(tree, "dtype") else {}
    found: Dict[str, Any] = {}
    for key, value in parts:
        found.update(flat(value, f"{prefix}.{key}" if prefix else key))
    return found


def run_export(export: Callable[[Checkpoint, str], Exported], argv: Optional[Sequence[str]] = None) -> int:
    """The command line of a worker's export; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if len(arguments) != 2:
        print("usage: python -m MODULE CHECKPOINT FOLDER", file=sys.stderr)
        return 2
    try:
        checkpoint = read(arguments[0])
        found = export(checkpoint, arguments[1])
    except (ConfigError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    about = {**found._asdict(), "files": dict(found.files), "left_out": list(found.left_out)}
    write_json(os.path.join(arguments[1], EXPORT_FILE), {"version": VERSION, **about})
    return 0


def _describe(name: str, array: Any) -> Tuple[str, List[int], int]:
    dtype = array.dtype if isinstance(array, Raw) else array.dtype.name
    if dtype not in _DTYPES:
        raise ValueError(f"{name} is an array of {dtype}, which a safetensors file cannot hold.")
    size = len(array.data) if isinstance(array, Raw) else array.nbytes
    return _DTYPES[dtype], list(array.shape), size


def _bytes(array: Any) -> bytes:
    native = array.dtype.newbyteorder("<") if array.dtype.byteorder == ">" else array.dtype
    return bytes(array.astype(native, copy=False).tobytes())
