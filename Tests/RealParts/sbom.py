#!/usr/bin/env python3
"""Validates a software bill of materials by the schema of its CycloneDX version, and its licences: sbom.py FILE"""
import json
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = Path(sys.argv[1]).read_text()
document = json.loads(text)
error = JsonStrictValidator(SchemaVersion.from_version(document["specVersion"])).validate_str(text)
if error:
    sys.exit(f"{sys.argv[1]} is not valid CycloneDX: {error}")


def stated(checkout):
    """The licence by the text in the package's checkout."""
    words = " ".join(next(checkout.glob("LICEN*")).read_text().split())
    if words.startswith("Apache License"):
        return "Apache-2.0"
    if "Permission is hereby granted, free of charge" in words:
        return "MIT"
    return f"something else: {words[:60]}"


components = {component["name"]: component["licenses"][0]["expression"] for component in document["components"]}
checkouts = Path(__file__).resolve().parent.parent.parent / ".build/checkouts"
wrong = [
    f"{name} is listed as {expression}, but its text is {text}"
    for name, expression in components.items()
    if "/" in name
    for text in [stated(checkouts / name.split("/")[1])]
    if text != expression
]
if wrong:
    sys.exit("; ".join(wrong))
print(f"{sys.argv[1]}: {len(document['components'])} components, valid by CycloneDX {document['specVersion']}")
