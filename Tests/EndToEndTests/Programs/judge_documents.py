"""Validates documents strictly: a field that the schema lacks is an error, too. A line of the file is [SCHEMA, DOCUMENT].

usage: judge_documents.py SCHEMAS FILE
"""
import json, pathlib, sys
from jsonschema import Draft202012Validator
def strict(node):
    if isinstance(node, dict):
        if "properties" in node and "additionalProperties" not in node:
            node["unevaluatedProperties"] = False
        for value in node.values():
            strict(value)
    elif isinstance(node, list):
        for value in node:
            strict(value)
    return node
schemas = pathlib.Path(sys.argv[1])
for line in open(sys.argv[2]):
    name, document = json.loads(line)
    schema = json.loads((schemas / (name + ".json")).read_text())
    Draft202012Validator.check_schema(schema)
    try:
        document = json.loads(document)
    except ValueError as error:
        print(name, "is not one JSON document:", error, document[:200])
        continue
    for error in list(Draft202012Validator(strict(schema)).iter_errors(document))[:5]:
        print(name, "/".join(map(str, error.absolute_path)), error.message[:300])
