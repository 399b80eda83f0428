"""Validates configurations by the JSON Schema that the program prints.

    python schema.py SCHEMA FOLDER

Prints one JSON object: what is wrong with each TOML file of the folder, by name; empty where nothing is.
"""

import json
import pathlib
import sys
import tomllib

import jsonschema


def main(schema, folder):
    schema = json.loads(pathlib.Path(schema).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.toml")):
        errors = validator.iter_errors(tomllib.loads(path.read_text()))
        found[path.name] = "\n".join(f"{error.json_path}: {error.message}" for error in errors)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:3])
