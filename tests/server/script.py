"""What the server does to which request: rules matched in order, each with one action."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, cast

from tests.server.answer import Variant
from tests.server.asked import Asked, Json, mapping

Cut: TypeAlias = Literal["", "short", "reset"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """How one request is answered; the default is an ordinary answer of the planted judge."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to the wire's own. `{http_date+2}` and `{rfc3339+2}` become times from now."""
    body: str | bytes | None = None
    """Instead of the judge's; a lone surrogate `\\udcff` in a text is the raw byte ff."""
    content_type: str = "application/json"
    variant: Variant = "plain"
    delay_s: float = 0.0
    """Wait before the first byte."""
    drip_bytes: int = 0
    """Send the body this many bytes at a time; 0 = at once."""
    drip_s: float = 0.3
    cut: Cut = ""
    """Send half of the body, then end the connection (`short`) or reset it."""
    truncate: int = 0
    """Take this many bytes off the end of the body, with a Content-Length that fits."""
    reset: bool = False
    """Reset the connection instead of an answer."""
    hang: bool = False
    """Never answer."""
    billed: bool | None = None
    """Default: a 200 and whatever the client cannot know about (hang, reset)."""

    @property
    def is_billed(self) -> bool:
        """Whether the request is paid for."""
        return self.status == 200 if self.billed is None else self.billed


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """Conditions that must all hold, and the action for the requests they hold for."""

    action: Action
    name: str = ""
    wire: str = ""
    model: str = "*"
    """A glob."""
    contains: str = ""
    """A text in the prompt."""
    header: tuple[str, str] = ("", "")
    """A header's name in lower case, and a text in its value."""
    fields: tuple[str, ...] = ()
    """Any of these names is in the request body."""
    number: tuple[int, int] = (1, 0)
    """From this request of the server to that one, counted from 1; 0 = no end."""
    nth: tuple[int, int] = (1, 0)
    """From this to that request with the same body."""
    skip: int = 0
    """Let the first so many matching requests pass."""
    times: int = 0
    """Act on so many requests only; 0 = on all."""
    probability: float = 1.0
    """Keyed by seed, body and nth, so that a run can be repeated."""
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """One request, as rules see it."""

    asked: Asked
    headers: Mapping[str, str]
    body: Json
    digest: bytes
    number: int
    nth: int


class Script:
    """The rules in force, and how often each has acted."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = [(rule, [0]) for rule in rules]

    def decide(self, arrival: Arrival) -> tuple[str, Action] | None:
        """Find the first rule that holds; None leaves the request to the judge."""
        for place, (rule, seen) in enumerate(self._rules):
            if not holds(rule, arrival):
                continue
            seen[0] += 1
            turn = seen[0] - rule.skip
            if turn > 0 and (not rule.times or turn <= rule.times):
                return rule.name or f"rule {place}", rule.action
        return None


def holds(rule: Rule, arrival: Arrival) -> bool:
    """Check a rule's conditions, apart from `skip` and `times`."""
    asked = arrival.asked
    name, part = rule.header
    return (
        _within(rule.number, arrival.number)
        and _within(rule.nth, arrival.nth)
        and rule.wire in ("", asked.wire)
        and (rule.model == "*" or fnmatchcase(asked.model, rule.model))
        and (not rule.contains or rule.contains in asked.text)
        and (not name or (name in arrival.headers and part in arrival.headers[name]))
        and (not rule.fields or any(key in arrival.body for key in rule.fields))
        and (rule.probability >= 1.0 or _draw(rule.seed, arrival) < rule.probability)
    )


def _within(bounds: tuple[int, int], value: int) -> bool:
    low, high = bounds
    return low <= value and (not high or value <= high)


def _draw(seed: int, arrival: Arrival) -> float:
    text = f"{seed} {arrival.nth} ".encode() + arrival.digest
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") * 2.0**-64


def rules_to_json(rules: Iterable[Rule]) -> str:
    """Write rules as a JSON list; bytes that are no UTF-8 become lone surrogates."""
    rows = [asdict(rule) for rule in rules]
    for row in rows:
        body = row["action"]["body"]
        if isinstance(body, bytes):
            row["action"]["body"] = body.decode("utf-8", "surrogateescape")
    return json.dumps(rows)


def rules_from_json(text: str) -> list[Rule]:
    """Read what `rules_to_json` wrote; left-out fields have their defaults.

    Raises
    ------
    ValueError
        When a rule or an action has a field that does not exist.
    """
    return [_rule(mapping(row)) for row in cast("list[object]", json.loads(text))]


def _rule(row: Json) -> Rule:
    action = Action(**_known(Action, mapping(row.get("action"))))
    given = _known(Rule, {name: value for name, value in row.items() if name != "action"})
    return Rule(action=action, **given)


def _known(kind: type, row: Json) -> dict[str, Any]:  # the fields' types are the sender's
    names = {known.name for known in fields(kind)}
    if strangers := sorted(set(row) - names):
        raise ValueError(f"{kind.__name__} has no field {strangers}; it has {sorted(names)}")
    return {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
