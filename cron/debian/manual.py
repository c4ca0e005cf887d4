#!/usr/bin/env python3
"""Man pages: one for each command, from the program's own description of them, and night-audit.yaml(5).

usage: manual.py PROGRAM DIRECTORY CONFIGURATION.md
The pages are DIRECTORY/man1/*.1.gz and DIRECTORY/man5/night-audit.yaml.5.gz.
"""
import gzip
import json
import os
import re
import subprocess
import sys


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def plain(markdown):
    """Markdown of a table cell or a paragraph without its marks."""
    markdown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return markdown.replace("`", "").replace("**", "").strip()


def spelled(argument):
    """How an argument is written: --since day, --quiet, order-id."""
    value = argument.get("valueName", "value")
    if argument["kind"] == "positional":
        return f"\\fI{escaped(value)}\\fR"
    names = ", ".join(
        f"\\fB{escaped(('--' if name['kind'] == 'long' else '-') + name['name'])}\\fR" for name in argument["names"])
    return names if argument["kind"] == "flag" else f"{names} \\fI{escaped(value)}\\fR"


def synopsis(name, command):
    words = [f".B {escaped(name)}"]
    if command.get("subcommands"):
        words.append("\\fIcommand\\fR")
    for argument in shown(command):
        word = spelled(argument).split(", ")[0 if argument["kind"] != "option" else -1]
        if argument.get("isRepeating"):
            word += " ..."
        words.append(f"[{word}]" if argument["isOptional"] else word)
    return "\n".join(words)


def shown(command):
    return [argument for argument in command.get("arguments", [])
            if argument.get("shouldDisplay", True) and not any(name["name"] in ("help", "version") for name in argument.get("names") or [])]


def blocks(discussion):
    """Paragraphs of prose, and blocks of lines that are indented and stay as they are."""
    for paragraph in re.split(r"\n\s*\n", discussion.strip("\n")):
        prose, example = [], []
        for line in paragraph.split("\n"):
            (example if line.startswith("  ") else prose).append(line)
        if prose:
            yield "prose", " ".join(prose)
        if example:
            yield "example", [line[2:] for line in example]


def body(discussion):
    text, heading = [], ".SH DESCRIPTION"
    if discussion:
        text.append(heading)
    for kind, content in blocks(discussion):
        if kind == "prose" and content.rstrip(":") == "Examples":
            text.append(".SH EXAMPLES")
        elif kind == "prose":
            text += [".PP", escaped(content)]
        else:
            text += [".PP", ".nf", ".RS 4", escaped("\n".join(content)), ".RE", ".fi"]
    return text


def page(names, command, version):
    name = "-".join(names)
    text = [f'.TH "{name.upper()}" "1" "" "night-audit {version}" "night-audit"', ".SH NAME"]
    text.append(f"{escaped(name)} \\- {escaped(command.get('abstract', '').rstrip('.'))}")
    text += [".SH SYNOPSIS", synopsis(" ".join(names), command)]
    text += body(command.get("discussion", ""))
    options = shown(command)
    if options:
        text.append(".SH OPTIONS")
    for argument in options:
        text += [".TP", spelled(argument), escaped(argument.get("abstract", "") or argument.get("discussion", ""))]
    children = [child for child in command.get("subcommands", [])
                if child.get("shouldDisplay", True) and child["commandName"] != "help"]
    if children:
        text.append(".SH COMMANDS")
    for child in children:
        text += [".TP", f".BR {escaped(name + '-' + child['commandName'])} (1)", escaped(child.get("abstract", ""))]
    others = ["night-audit.yaml(5)"] + (["night-audit(1)"] if len(names) > 1 else [])
    text += [".SH SEE ALSO", ", ".join(escaped(other) for other in others),
             ".PP", "Documentation: /usr/share/doc/night-audit"]
    yield f"man1/{name}.1", "\n".join(text) + "\n"
    for child in children:
        yield from page(names + [child["commandName"]], child, version)


def configuration(markdown, version):
    text = [f'.TH "NIGHT-AUDIT.YAML" "5" "" "night-audit {version}" "night-audit"', ".SH NAME",
            "night\\-audit.yaml \\- configuration of night\\-audit"]
    heading, table, code = "DESCRIPTION", False, False
    text.append(".SH DESCRIPTION")
    for line in markdown.split("\n")[1:]:
        if line.startswith("```"):
            text += [".RE", ".fi"] if code else [".PP", ".nf", ".RS 4"]
            code = not code
        elif code:
            text.append(escaped(line) or ".sp")
        elif line.startswith("#"):
            text.append(f".SH {escaped(line.lstrip('# ').upper())}")
        elif line.startswith("|"):
            cells = [plain(cell.replace("\0", "|")) for cell in line.replace("\\|", "\0").strip("|").split("|")]
            if not table or set("".join(cells)) <= set("-: "):
                table = True
                continue
            text += [".TP", f"\\fB{escaped(cells[0])}\\fR", escaped(". ".join(
                part for part in ([f"Default: {cells[1]}" if len(cells) > 2 and cells[1] else ""] + cells[-1:]) if part))]
        else:
            table = False
            if line.startswith("* "):
                text.append(".IP \\(bu 2")
                line = line[2:]
            text.append(escaped(plain(line)) if line.strip() else ".PP")
    return "\n".join(text) + "\n"


def main():
    program, directory, source = sys.argv[1:4]
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    dump = subprocess.run([program, "--experimental-dump-help"], check=True, capture_output=True, text=True).stdout
    pages = dict(page(["night-audit"], json.loads(dump)["command"], version))
    with open(source, encoding="utf-8") as file:
        pages["man5/night-audit.yaml.5"] = configuration(file.read(), version)
    for name, text in pages.items():
        path = os.path.join(directory, name + ".gz")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(gzip.compress(text.encode(), 9, mtime=0))
        os.chmod(path, 0o644)


main()
