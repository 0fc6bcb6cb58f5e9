"""A value that fits the JSON schema sent, with the verdict wherever the schema has an enum."""

from __future__ import annotations

from tests.server.asked import Json, mapping, sequence

_PLACES = ("first", "second", "tie")


def fill(schema: Json, verdict: str, text: str) -> object:
    """Make a value for a schema: enums take the verdict, strings the text, booleans true."""
    return _fill(schema, schema, verdict, text)


def _fill(root: Json, schema: Json, verdict: str, text: str) -> object:
    if "$ref" in schema:
        schema = _resolve(root, str(schema["$ref"]))
    if "enum" in schema:
        return _choose(list(sequence(schema["enum"])), verdict)
    if "const" in schema:
        return schema["const"]
    choices = sequence(schema.get("anyOf")) or sequence(schema.get("oneOf"))
    if choices:
        return _fill(root, mapping(choices[0]), verdict, text)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = sequence(schema["type"])[0]
    if kind == "object":
        fields = mapping(schema.get("properties")).items()
        return {name: _fill(root, mapping(inner), verdict, text) for name, inner in fields}
    if kind == "array":
        least = schema.get("minItems")
        count = least if isinstance(least, int) else 1
        return [_fill(root, mapping(schema.get("items")), verdict, text)] * count
    return {"boolean": True, "integer": 1, "number": 1.0, "null": None}.get(str(kind), text)


def _choose(words: list[object], verdict: str) -> object:
    """Take the verdict's own word, or the word in its place where the vocabulary is another."""
    if verdict in words or verdict not in _PLACES:
        return verdict
    return words[min(_PLACES.index(verdict), len(words) - 1)]


def _resolve(root: Json, reference: str) -> Json:
    found = root
    for step in reference.removeprefix("#/").split("/"):
        found = mapping(found.get(step))
    return found
