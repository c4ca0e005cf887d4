"""What night-audit is made of, as a CycloneDX 1.5 document on standard output. Needs no build.

The Swift packages are those of Package.swift, with their exact versions; what they depend on in turn is read from
.build/checkouts where it has been fetched. The libraries of the system are those that the program links, with the versions
that pkg-config knows, where they are installed. What has no licence here stops it.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Licences as the projects state them (SPDX).
LICENCES = {
    "Apache-2.0": {
        "apple/swift-algorithms", "apple/swift-argument-parser", "apple/swift-asn1", "apple/swift-async-algorithms",
        "apple/swift-atomics", "apple/swift-certificates", "apple/swift-collections", "apple/swift-configuration",
        "apple/swift-crypto", "apple/swift-distributed-tracing", "apple/swift-http-structured-headers",
        "apple/swift-http-types", "apple/swift-log", "apple/swift-metrics", "apple/swift-nio", "apple/swift-nio-extras",
        "apple/swift-nio-http2", "apple/swift-nio-ssl", "apple/swift-numerics", "apple/swift-service-context",
        "apple/swift-system", "hummingbird-project/swift-mustache", "swift-server/async-http-client",
        "swift-server/swift-service-lifecycle", "swiftlang/swift-subprocess", "BoringSSL",
    },
    "Apache-2.0 WITH Swift-exception": {"Swift runtime", "Foundation"},
    "BSD-2-Clause": {"xlsxwriter"},
    "MIT": {"expat", "vapor/jwt-kit", "jpsim/Yams", "libyaml", "llhttp"},
    "PostgreSQL": {"libpq"},
    "Unicode-3.0": {"ICU"},
    "Zlib": {"minizip", "zlib"},
}
# Dependencies that are not linked: the simulator's, and those of other platforms.
NOT_LINKED = {"hummingbird-project/hummingbird", "apple/swift-nio-transport-services"}
# Libraries inside other packages, and the runtime of every Swift program.
WITHIN = {"BoringSSL": "apple/swift-nio-ssl", "llhttp": "apple/swift-nio", "libyaml": "jpsim/Yams"}
RUNTIME = ["Swift runtime", "Foundation", "ICU"]


def licence(name):
    for expression, names in LICENCES.items():
        if name in names:
            return expression
    sys.exit(f"cron/sbom.py: {name} has no licence in LICENCES; look into its LICENSE file and add it")


def version():
    text = (ROOT / "Sources/Run/Terminal/Version.swift").read_text()
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
    # Dependencies that were never fetched belong to tests, plugins or other platforms.
    return {
        name: number for name, number in found.items() if (number or name in direct) and name not in NOT_LINKED
    }


def system_libraries():
    for name in ["expat", "libpq", "minizip", "xlsxwriter", "zlib"]:
        answer = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True)
        yield name, answer.stdout.strip() if answer.returncode == 0 else None


def component(name, number, kind, purl):
    entry = {"type": "library", "name": name, "licenses": [{"expression": licence(name)}]}
    if number:
        entry["version"] = number
        purl = f"{purl}@{number}"
    entry["purl"] = purl
    entry["bom-ref"] = purl
    entry["properties"] = [{"name": "night-audit:linked", "value": kind}]
    return entry


def main():
    reference = f"pkg:generic/night-audit@{version()}"
    packages = swift_packages()
    components = [
        component(name, number, "statically", f"pkg:swift/github.com/{name}")
        for name, number in sorted(packages.items())
    ] + [
        component(name, None, "statically", f"pkg:generic/{name.replace(' ', '-').lower()}")
        for name in [*RUNTIME, *(name for name, package in sorted(WITHIN.items()) if package in packages)]
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
