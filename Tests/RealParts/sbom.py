#!/usr/bin/env python3
"""Holds a software bill of materials against the schema of its CycloneDX version: sbom.py FILE"""
import json
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = Path(sys.argv[1]).read_text()
document = json.loads(text)
error = JsonStrictValidator(SchemaVersion.from_version(document["specVersion"])).validate_str(text)
if error:
    sys.exit(f"{sys.argv[1]} is no CycloneDX: {error}")
unlicensed = [component["name"] for component in document["components"] if not component.get("licenses")]
if unlicensed:
    sys.exit(f"without a licence: {', '.join(unlicensed)}")
print(f"{sys.argv[1]}: {len(document['components'])} components, valid by CycloneDX {document['specVersion']}")
