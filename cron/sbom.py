"""What night-audit is made of, as a CycloneDX 1.5 document on standard output. Needs no build.

The Swift packages are those of Package.swift, with their exact versions; what they depend on in turn is read from
.build/checkouts where it has been fetched. The libraries of the system are those that the program links, with the versions
that pkg-config knows, where they are installed.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Licences as each project states them (SPDX).
LICENCES = {
    "BSD-2-Clause": {"xlsxwriter"}, "MIT": {"expat", "vapor/jwt-kit", "jpsim/Yams"}, "PostgreSQL": {"libpq"},
    "Zlib": {"minizip", "zlib"},
}


def licence(name):
    for identifier, names in LICENCES.items():
        if name in names:
            return identifier
    return "Apache-2.0"


def version():
    text = (ROOT / "Sources/Run/Version.swift").read_text()
    return re.search(r'current = "([^"]+)"', text).group(1)


def swift_packages():
    found = {}
    manifests = [ROOT / "Package.swift", *sorted(ROOT.glob(".build/checkouts/*/Package.swift"))]
    direct = set()
    for manifest in manifests:
        text = manifest.read_text(errors="replace")
        for owner, name in re.findall(r'url:\s*"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?"', text):
            if manifest == manifests[0]:
                direct.add(f"{owner}/{name}")
            found.setdefault(f"{owner}/{name}", None)
        for owner, name, exact in re.findall(
            r'url:\s*"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?"\s*,\s*exact:\s*"([^"]+)"', text
        ):
            if manifest == manifests[0]:
                found[f"{owner}/{name}"] = exact
    for checkout in sorted(ROOT.glob(".build/checkouts/*")):
        for known in found:
            if found[known] is None and known.split("/")[1].lower() == checkout.name.lower():
                tag = subprocess.run(
                    ["git", "-C", checkout, "describe", "--tags", "--always"], capture_output=True, text=True
                )
                found[known] = tag.stdout.strip() or None
    # A dependency that was never fetched is none of this program's: a test's, a plugin's, another platform's.
    return {name: number for name, number in found.items() if number or name in direct}


def system_libraries():
    for name in ["expat", "libpq", "minizip", "xlsxwriter", "zlib"]:
        answer = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True)
        yield name, answer.stdout.strip() if answer.returncode == 0 else None


def component(name, number, kind, purl):
    entry = {"type": "library", "name": name, "licenses": [{"license": {"id": licence(name)}}]}
    if number:
        entry["version"] = number
        purl = f"{purl}@{number}"
    entry["purl"] = purl
    entry["bom-ref"] = purl
    entry["properties"] = [{"name": "night-audit:linked", "value": kind}]
    return entry


def main():
    reference = f"pkg:generic/night-audit@{version()}"
    components = [
        component(name, number, "statically", f"pkg:swift/github.com/{name}")
        for name, number in sorted(swift_packages().items())
    ] + [component(name, number, "dynamically", f"pkg:generic/{name}") for name, number in system_libraries()]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "name": "night-audit", "version": version(), "bom-ref": reference,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": reference, "dependsOn": [entry["bom-ref"] for entry in components]}],
    }
    json.dump(document, sys.stdout, indent=2, sort_keys=True)
    print()


main()
