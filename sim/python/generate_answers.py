# SPDX-License-Identifier: Apache-2.0
"""Makes a class of each object that the JSON Schemas of answers describe."""
import itertools
import json
import keyword
import re
import textwrap

COMMANDS = ["simulate", "advise", "plan", "serve", "validate", "calibrate", "topology", "catalog",
            "schedule"]
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None",
         "object": "dict[str, Any]", "array": "list[Any]"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The answers' types: one class for each object of docs/schema, from which this file is generated."""
from __future__ import annotations

from typing import Any, Literal

from orrery.record import Answer, Record
'''


def camel(name):
    return "".join(word.capitalize() for word in re.split(r"[^a-z0-9]+", name.lower()) if word)


def singular(name):
    if name.endswith(("sses", "ches")):
        return name[:-2]
    return name[:-3] + "y" if name.endswith("ies") else name[:-1] if name.endswith("s") else name


def joined(kinds):
    once = list(dict.fromkeys(kinds))
    return " | ".join(sorted(once, key=lambda kind: kind == "None"))


def resolved(schema, root):
    target = root
    for key in schema["$ref"].removeprefix("#/").split("/") if "$ref" in schema else []:
        target = target[key]
    return target if "$ref" in schema else schema


def one_object(schema, several, root):
    """Objects of several kinds as one that has the members of all: what one of them lacks is optional."""
    kinds = [resolved(one, root) for one in schema[several]]
    if len(kinds) < 2 or not all("properties" in kind for kind in kinds):
        return schema
    members = {}
    for kind in kinds:
        for key, value in kind["properties"].items():
            known = members.setdefault(key, [])
            if value not in known:
                known.append(value)
    return {**{key: value for key, value in schema.items() if key != several}, "type": "object",
            "properties": {key: values[0] if len(values) == 1 else {"anyOf": values}
                           for key, values in members.items()},
            "required": sorted(set.intersection(*(set(kind.get("required", [])) for kind in kinds)))}


class Classes:
    """Objects of equal shape are one class, whatever schema they stand in."""

    def __init__(self):
        self.names = {}  # shape as text -> name
        self.taken = {"Record", "Answer", "Any", "Literal"}
        self.command = ""
        self.texts = []  # in the order of their use: parts before what holds them

    def kind_of(self, schema, root, name, above):
        """The annotation of a value, and how it is made (None: as it is)."""
        if "$ref" in schema:
            return self.kind_of(resolved(schema, root), root, schema["$ref"].rsplit("/", 1)[1], above)
        if "enum" in schema:
            return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]", None
        if "const" in schema:
            return f"Literal[{schema['const']!r}]", None
        for several in ("anyOf", "oneOf"):
            if several in schema and "properties" not in schema:
                schema = one_object(schema, several, root)
                if several not in schema:
                    return self.kind_of(schema, root, name, above)
                kinds = [self.kind_of(one, root, name, above) for one in schema[several]]
                made = [how for _, how in kinds if how is not None]
                return joined([kind for kind, _ in kinds]), made[0] if len(made) == 1 else None
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if not types:
            return "Any", None
        kinds = [self.kind_of_type(one, schema, root, name, above) for one in types]
        made = [how for _, how in kinds if how is not None]
        return joined([kind for kind, _ in kinds]), made[0] if made else None

    def kind_of_type(self, kind, schema, root, name, above):
        if kind == "array" and "items" in schema:
            item, how = self.kind_of(schema["items"], root, singular(name), above)
            return f"list[{item}]", how and f"[{how}]"
        if kind == "object" and "properties" in schema:
            made = self.class_of(schema, root, name, above)
            return made, made
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            item, how = self.kind_of(schema["additionalProperties"], root, singular(name), above)
            return f"dict[str, {item}]", how and f'{{"*": {how}}}'
        return PLAIN[kind], None

    def class_of(self, schema, root, name, above):
        if name == "orrery":  # the head differs in the command alone
            said = {"type": "string", "description": "The command that answered."}
            schema, name = {**schema, "properties": {**schema["properties"], "command": said}}, "head"
        shape = json.dumps(schema["properties"], sort_keys=True)
        if shape in self.names:
            return self.names[shape]
        plain = camel(schema.get("title", name))
        longer = (above + plain + str(i) for i in itertools.count(2))
        given = next(one for one in itertools.chain((plain, self.command + plain, above + plain), longer)
                     if one not in self.taken)
        self.taken.add(given)
        self.names[shape] = given
        self.write(given, "Record", schema, root, schema.get("description", ""))
        return given

    def write(self, given, base, schema, root, about):
        lines, parts = [], []
        required = set(schema.get("required", []))
        optional = [key for key in schema["properties"] if key not in required]
        for key, value in schema["properties"].items():
            if base == "Answer" and key == "fits":
                continue
            kind, how = self.kind_of(value, root, key, given)
            kind = kind if key in required or kind.endswith("None") or kind == "Any" else kind + " | None"
            lines.append(f"{key}_: {kind}" if keyword.iskeyword(key) else f"{key}: {kind}")
            if value.get("description"):
                lines.append(f'"""{value["description"]}"""'.replace("\\", "\\\\"))
            if how:
                parts.append(f"{key!r}: {how}")
        head = [f'"""{about}"""'] if about else []
        if parts:
            head.append("_parts = {" + ", ".join(parts) + "}")
        if optional:
            head.append("_optional = frozenset({" + ", ".join(map(repr, optional)) + "})")
        body = textwrap.indent("\n".join(head + lines), "    ")
        self.texts.append(f"\n\nclass {given}({base}):\n{body}\n")


def answers_text(folder):
    classes = Classes()
    kinds = []
    for command in COMMANDS:
        schema = json.loads((folder / f"{command}.schema.json").read_text())
        name, classes.command = camel(command) + "Answer", camel(command)
        classes.write(name, "Answer", schema, schema,
                      schema["title"].replace("`", "") + ".")
        kinds.append(f'    "{command}": {name},')
    return HEAD + "".join(classes.texts) + "\n\nKINDS: dict[str, type[Answer]] = {\n" + "\n".join(kinds) + "\n}\n"
