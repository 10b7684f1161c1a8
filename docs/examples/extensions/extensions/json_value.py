#!/usr/bin/env python3
"""json.value: one value in a JSON file. Everything else in the file stays as it is."""

import difflib
import json
import os
import shutil
import sys
import tempfile


def main():
    mode, request = sys.argv[1], json.load(sys.stdin)
    if request["protocol"] != 1:
        sys.exit("this is for protocol 1")
    want = request["parameters"]
    path = os.path.join(request["root"], want["name"].lstrip("/"))

    old = read(path)
    data = json.loads(old or "{}")
    same, previous = put(data, want["key"], want["value"])
    new = json.dumps(data, indent=2, ensure_ascii=False) + "\n"

    if mode == "check":
        answer = {} if same else {"change": "set " + want["key"], "diff": diff(want["name"], old, new)}
    else:
        if not same:
            replace(path, new)
        answer = {"changed": not same, "state": "set", "data": {"previous": previous}}
    json.dump(answer, sys.stdout)


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def put(data, key, value):
    """Set the value; tell whether it was the same before, and what it was."""
    *parents, last = key.split(".")
    for parent in parents:
        data = data.setdefault(parent, {})
        if not isinstance(data, dict):
            sys.exit(f"{parent} in {key} is no map")
    previous = data.get(last)
    same = last in data and json.dumps(previous) == json.dumps(value)
    data[last] = value
    return same, previous


def diff(name, old, new):
    names = f"{name} (current)", f"{name} (desired)"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")
    return "".join(line + "\n" for line in lines)


def replace(path, text):
    """Replace the file as a whole, with the mode that it had."""
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), delete=False, encoding="utf-8") as f:
        try:
            f.write(text)
            f.flush()
            if os.path.exists(path):
                shutil.copymode(path, f.name)
            else:
                os.chmod(f.name, 0o644)
            os.fsync(f.fileno())
            os.replace(f.name, path)
        except BaseException:
            os.unlink(f.name)
            raise


main()
