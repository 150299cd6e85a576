#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the tensors of MODEL_DIR/model.safetensors with listed fingerprints.

A fingerprint is name, shape, sum, sum of magnitudes, first and last values. Values must be equal as float32; sums, made
in float64, within 1e-9 of the sum of magnitudes. Every listed tensor must be there, and no other.
The order of inner rows leaves no trace in a fingerprint; tests/convert_gguf_test.py looks at that.
"""
import argparse
import json
import sys
from pathlib import Path

try:
    import numpy as np
    from safetensors import safe_open
except ImportError as missing:
    sys.exit(f"check_fingerprints: Python package missing ({missing}); run scripts/fetch_weights, which sets up "
             "build/venv, and use build/venv/bin/python")


def differences(tensor, shape, total, magnitude, first, last):
    flat = np.asarray(tensor, dtype=np.float32).reshape(-1)
    if list(tensor.shape) != shape:
        yield f"shape {list(tensor.shape)}, expected {shape}"
        return
    for what, values, expected in (("first", flat[:len(first)], first), ("last", flat[len(flat) - len(last):], last)):
        if not np.array_equal(values, np.asarray(expected, dtype=np.float32)):
            yield f"{what} values {values.tolist()}, expected {expected}"
    wide = flat.astype(np.float64)
    for what, value, expected in (("sum", wide.sum(), total), ("sum of magnitudes", np.abs(wide).sum(), magnitude)):
        if not abs(value - expected) <= 1e-9 * magnitude:  # false for NaN too
            yield f"{what} {value!r}, expected {expected!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL_DIR", type=Path)
    parser.add_argument("fingerprints", metavar="FINGERPRINTS.json", type=Path)
    arguments = parser.parse_args()
    wrong = 0
    try:
        listed = {entry[0]: entry[1:] for entry in json.loads(arguments.fingerprints.read_text())["tensors"]}
        with safe_open(arguments.model / "model.safetensors", framework="numpy") as weights:
            names = set(weights.keys())
            for name in sorted(names ^ set(listed)):
                print(f"{name}: {'not listed' if name in names else 'missing'}")
                wrong += 1
            for name in listed:
                if name in names:
                    for difference in differences(weights.get_tensor(name), *listed[name]):
                        print(f"{name}: {difference}")
                        wrong += 1
    except Exception as error:
        sys.exit(f"check_fingerprints: {type(error).__name__}: {error}")
    if wrong:
        sys.exit(f"check_fingerprints: {wrong} differences")
    if not listed:
        sys.exit(f"check_fingerprints: {arguments.fingerprints} lists no tensor")
    print(f"{len(listed)} tensors match {arguments.fingerprints.name}")


if __name__ == "__main__":
    main()
