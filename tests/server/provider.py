"""The provider without its socket: takes requests, decides, counts, and hands answers over."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from pydantic_core import from_json

from tests.server.answer import compose, tokens
from tests.server.asked import Asked, Json, Wire, mapping, read_asked
from tests.server.bill import Bill, Entry
from tests.server.deliver import Delivery
from tests.server.faults import ANTHROPIC_WRONG_KEY, WRONG_KEY, anthropic_error, openai_error
from tests.server.http import Connection, Request
from tests.server.limiter import Limit, Limiter, Refusal, rfc3339
from tests.server.planted import Decision, Extract, Markers, Planted
from tests.server.script import Action, Arrival, Rule, Script
from tests.server.wire import render

_PLAIN = Action()
_CLOCK = re.compile(r"\{(http_date|rfc3339)([+-][0-9.]+)\}")
_REQUEST_ID: dict[Wire, str] = {"openai": "x-request-id", "anthropic": "request-id"}

Judge: TypeAlias = Callable[[str, str, str], Decision]


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """Everything a server is told when it starts."""

    judges: Mapping[str, Judge] = field(default_factory=lambda: {"*": Planted()})
    """Glob of model name -> the judge behind it; the first match is taken."""
    extract: Extract = field(default_factory=Markers)
    """Finds both answers in a prompt."""
    rules: tuple[Rule, ...] = ()
    limits: Mapping[str, Limit] = field(default_factory=dict[str, Limit])
    """Glob of model name -> one limit that all models of the glob share."""
    keys: frozenset[str] = frozenset()
    """Accepted keys; empty = any."""
    latency_s: float = 0.0
    """Time every ordinary answer takes."""
    clock_skew_s: float = 0.0
    """How far the server's wall clock is ahead, in Date and in every absolute time it tells."""
    log: Path | None = None
    """JSONL, one line a request."""


class Provider:
    """Answers requests of both wires; lives on one event loop."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.bill = Bill(setup.log)
        self.script = Script(setup.rules)
        self.outage: tuple[Action, float] = (_PLAIN, 0.0)
        """What is answered to everybody, and until when."""
        self._limiters = {
            glob: Limiter(limit, time.monotonic()) for glob, limit in setup.limits.items()
        }
        self._by_model: dict[str, tuple[Judge, Limiter | None]] = {}
        self._auths: dict[str, tuple[str, bool]] = {}
        self._number = 0
        self._date = (0, "")

    def limiter_sums(self) -> Json:
        """Sum up each limit: refusals, and who came too fast."""
        return {
            glob: {
                "refused": limiter.refused,
                "violations_minute": limiter.violations_minute,
                "violations_second": limiter.violations_second,
            }
            for glob, limiter in self._limiters.items()
        }

    def take(self, wire: Wire, request: Request, connection: Connection) -> None:
        """Accept one request: decide its answer, count it, and start sending."""
        now = time.monotonic()
        arrival = self._arrival(wire, request)
        auth, accepted = self._auth(request.headers)
        rule, action, told = self._decide(arrival, accepted=accepted, now=now)
        digest = arrival.digest
        content, spent = self._content(arrival, action)
        billed = action.is_billed
        entry = Entry(
            number=arrival.number,
            time=now,
            wire=wire,
            model=arrival.asked.model,
            digest=digest.hex(),
            auth=auth,
            nth=arrival.nth,
            status=0 if action.hang or action.reset else action.status,
            input_tokens=spent[0] if billed else 0,
            output_tokens=spent[1] if billed else 0,
            billed=billed,
            in_flight=self.bill.total.in_flight,
            rule=rule,
        )
        if self.bill.add(entry, digest):
            asyncio.get_running_loop().call_soon(self.bill.write)

        def ended(delivered: bool) -> None:
            self.bill.leave(entry, digest, delivered=delivered)

        ordinary = action.body is None and action.status == 200
        delay_s = action.delay_s + (self.setup.latency_s if ordinary else 0.0)
        headers = self._headers(wire, action, told, arrival.number)
        Delivery(connection, action, ended).start(headers, content, delay_s)

    def _arrival(self, wire: Wire, request: Request) -> Arrival:
        """Read a request and count it in."""
        try:
            body = mapping(from_json(request.body))
        except ValueError:
            body = _patient(request.body)
        asked = read_asked(wire, body)
        digest = hashlib.blake2b(request.body, digest_size=16).digest()
        self._number += 1
        return Arrival(
            asked=asked,
            headers=request.headers,
            body=body,
            digest=digest,
            number=self._number,
            nth=self.bill.arrive(asked.model, digest),
        )

    def _in_flight(self, limiter: Limiter) -> int:
        """Count the calls in flight of all models that share the limit."""
        tallies = self.bill.by_model.items()
        return sum(t.in_flight for model, t in tallies if self._model(model)[1] is limiter)

    def _decide(
        self, arrival: Arrival, *, accepted: bool, now: float
    ) -> tuple[str, Action, Mapping[str, str]]:
        """Find the action, with the rule that set it and the limit's headers."""
        asked = arrival.asked
        outage, until = self.outage
        if now < until:
            return "outage", outage, {}
        if not accepted:
            return "key", WRONG_KEY if asked.wire == "openai" else ANTHROPIC_WRONG_KEY, {}
        if (complaint := _complaint(arrival)) is not None:
            return "form", complaint, {}
        told: Mapping[str, str] = {}
        limiter = self._model(asked.model)[1]
        if limiter is not None:
            refusal = limiter.admit(tokens(asked.text), self._in_flight(limiter), now)
            told = limiter.headers(asked.wire, now, time.time() + self.setup.clock_skew_s)
            if refusal is not None:
                return "limit", _refuse(asked.wire, refusal), told
        scripted = self.script.decide(arrival)
        return ("", _PLAIN, told) if scripted is None else (*scripted, told)

    def _content(self, arrival: Arrival, action: Action) -> tuple[bytes, tuple[int, int]]:
        """Make the body and count the tokens it costs."""
        asked = arrival.asked
        if action.body is not None:
            body = action.body
            raw = body.encode("utf-8", "surrogateescape") if isinstance(body, str) else body
            return raw, (tokens(asked.text), 0)
        if action.status != 200:
            return b"", (0, 0)
        answers = self.setup.extract(asked.text)
        if answers is None:
            self.bill.unmarked += 1
            answers = ("", "")
        decision = self._model(asked.model)[0](*answers, asked.text)
        answer = compose(asked, decision, action.variant)
        raw = render(asked, answer, decision, arrival.number)
        raw = raw[: len(raw) - action.truncate]
        return raw, (answer.input_tokens, answer.output_tokens)

    def _model(self, model: str) -> tuple[Judge, Limiter | None]:
        found = self._by_model.get(model)
        if found is None:
            judges = self.setup.judges.items()
            judge = next((j for glob, j in judges if fnmatchcase(model, glob)), Planted())
            limits = self._limiters.items()
            limiter = next((one for glob, one in limits if fnmatchcase(model, glob)), None)
            found = self._by_model[model] = (judge, limiter)
        return found

    def _auth(self, headers: Mapping[str, str]) -> tuple[str, bool]:
        """Hash the key of either header; the second part is whether it is accepted."""
        sent = headers.get("authorization") or headers.get("x-api-key") or headers.get("api-key")
        known = self._auths.get(sent or "")
        if known is None:
            key = (sent or "").removeprefix("Bearer ").strip()
            accepted = bool(key) and (not self.setup.keys or key in self.setup.keys)
            known = (hashlib.blake2b(key.encode(), digest_size=8).hexdigest(), accepted)
            self._auths[sent or ""] = known
        return known

    def _headers(
        self, wire: Wire, action: Action, told: Mapping[str, str], number: int
    ) -> dict[str, str]:
        wall = time.time() + self.setup.clock_skew_s
        if int(wall) != self._date[0]:
            self._date = (int(wall), formatdate(wall, usegmt=True))
        headers = {
            "date": self._date[1],
            "content-type": action.content_type,
            _REQUEST_ID[wire]: f"req_{number:016x}",
            **told,
        }
        for name, value in action.headers.items():
            headers[name] = _CLOCK.sub(lambda found: _clock(found, wall), value)
        if action.cut:
            headers["connection"] = "close"
        return headers

    def change(self, rules: list[Rule]) -> None:
        """Follow other rules from now on."""
        self.script = Script(rules)

    def admit_keys(self, keys: frozenset[str]) -> None:
        """Accept other keys from now on."""
        self.setup = replace(self.setup, keys=keys)
        self._auths.clear()


def _patient(raw: bytes) -> Json:
    """Read what only Python's own reader takes (lone surrogates); nothing for what is no JSON."""
    try:
        return mapping(json.loads(raw))
    except ValueError:
        return {}


def _clock(found: re.Match[str], wall: float) -> str:
    at = wall + float(found[2])
    return formatdate(at, usegmt=True) if found[1] == "http_date" else rfc3339(at)


def _complaint(arrival: Arrival) -> Action | None:
    """Refuse what both vendors refuse, so that a malformed call is not answered here alone."""
    asked: Asked = arrival.asked
    faults = [name for name in ("model", "messages") if not arrival.body.get(name)]
    if asked.wire == "openai":
        if faults:
            return openai_error(400, f"you must provide {faults}", code=None, param=faults[0])
        return None
    faults += [] if asked.max_tokens else ["max_tokens"]
    faults += [] if "anthropic-version" in arrival.headers else ["anthropic-version"]
    if faults:
        return anthropic_error(400, "invalid_request_error", f"{faults}: Field required")
    return None


def _refuse(wire: Wire, refusal: Refusal) -> Action:
    message = f"Rate limit reached on {refusal.what}. Try again in {refusal.wait_s:.3f}s."
    if wire == "openai":
        told = {"retry-after-ms": str(int(refusal.wait_s * 1000) + 1)}
        told["retry-after"] = str(int(refusal.wait_s) + 1)
        return openai_error(
            429, message, code="rate_limit_exceeded", type=refusal.what, headers=told
        )
    told = {"retry-after": str(int(refusal.wait_s) + 1)}
    return anthropic_error(429, "rate_limit_error", message, headers=told)
