"""How a judge behind an HTTP interface is asked, whatever its provider.

The first call goes alone: it finds a wrong key, a wrong model and refused parameters with one
request, and settles the form of the verdict for all others, which wait for it. Everything received
is kept before it is read. Nothing that an SDK raises leaves this package: its exceptions carry the
key and the prompt.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from judgebias.calls import Call
from judgebias.config import WireJudge
from judgebias.errors import JudgeHalted
from judgebias.judges.asking import Asking
from judgebias.judges.body import dig, parse, string
from judgebias.judges.classify import classify, read_fault
from judgebias.judges.gate import Gate, NotSent, SharedPause, Unaffordable, pass_gate
from judgebias.judges.hedge import Hedge
from judgebias.judges.outcome import (
    Answered,
    Halt,
    Outcome,
    RateLimited,
    Refused,
    Transient,
    Unusable,
)
from judgebias.judges.retry import Policy, Tries, persist, worth_another
from judgebias.judges.secrets import Secret, endpoint
from judgebias.judges.soft import read_probabilities
from judgebias.judges.streak import Streak
from judgebias.judges.usage import estimate_tokens, silently_cut
from judgebias.judges.wire import Received, Wire, raw_text, verdict_of
from judgebias.judges.wire_form import WireForm, adapt, opening_form
from judgebias.prompts import Prompt, Template, VerdictForm
from judgebias.replies import FailureKind, Reply, Usage

_SETTLING_CALLS = 3
"""After so many calls that were accepted but gave no verdict, the form in use is kept."""
_ACCEPTED = frozenset(
    {
        FailureKind.TRUNCATED,
        FailureKind.REFUSED,
        FailureKind.FILTERED,
        FailureKind.EMPTY,
        FailureKind.INVALID,
    }
)


class Asker:
    """A judge; its provider's `Wire` is passed in."""

    def __init__(
        self,
        config: WireJudge,
        template: Template,
        key: Secret,
        wire: Wire,
        *,
        gate: Gate | None = None,
        form: WireForm | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._config = config
        self._template = template
        self._key = key
        self._wire = wire
        self._gate = gate or SharedPause()
        self._sleep = sleep
        self._form = form or opening_form(config)
        self._is_settled = form is not None
        self._settling = asyncio.Lock()
        self._settling_calls = 0
        self._streak = Streak()
        self._hedge = Hedge(config.hedge)
        self._halted: tuple[str, str] | None = None
        self._policy = Policy(
            max_attempts=config.max_attempts, larger_budget=config.max_tokens_retry
        )

    @property
    def settled(self) -> WireForm | None:
        """The form that all calls are asked in, once it is known."""
        return self._form if self._is_settled else None

    async def ask(self, call: Call) -> Reply:
        """Ask one call.

        Raises
        ------
        JudgeHalted
            When no other call could be answered either; every later call raises it at once.
        """
        if self._is_settled:
            return await self._ask_settled(call)
        async with self._settling:
            if not self._is_settled:
                return await self._ask_and_settle(call)
        return await self._ask_settled(call)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    async def _ask_settled(self, call: Call) -> Reply:
        asking = Asking(call=call)
        return self._conclude(asking, await self._try(asking, self._form, self._policy))

    async def _ask_and_settle(self, call: Call) -> Reply:
        """Ask the first call, changing what the server refuses or ignores."""
        asking = Asking(call=call)
        form = self._form
        while True:
            # A reply that ignores the schema is not asked for again before the next form is.
            adaptable = self._config.verdict == "auto" and form.verdict is not VerdictForm.TEXT
            policy = replace(self._policy, unusable_tries=1) if adaptable else self._policy
            outcome = await self._try(asking, form, policy)
            following = adapt(form, outcome, self._config)
            if following is None or asking.unaffordable:
                break
            form, asking.tries = following, Tries()
        if self._config.soft:
            self._check_soft(asking, outcome)
        self._settle(form, outcome)
        return self._conclude(asking, outcome)

    def _check_soft(self, asking: Asking, outcome: Outcome) -> None:
        """Stop at the first call where a server refuses or ignores log-probabilities."""
        refused = isinstance(outcome, Refused) and "logprobs" in outcome.parameter
        if refused or (isinstance(outcome, Answered) and asking.soft is None):
            self._halt("it gives no log-probabilities for the verdict", "set soft = false")

    def _settle(self, form: WireForm, outcome: Outcome) -> None:
        if isinstance(outcome, Refused | Unusable) and outcome.kind in _ACCEPTED:
            self._settling_calls += 1
        if isinstance(outcome, Answered) or self._settling_calls >= _SETTLING_CALLS:
            self._form, self._is_settled = form, True

    async def _try(self, asking: Asking, form: WireForm, policy: Policy) -> Outcome:
        """Send a call until there is an outcome that no other try would change."""
        prompt = self._template.render(asking.call, form.verdict)

        async def attempt() -> Outcome:
            outcome = await self._send(asking, prompt, form)
            asking.tries.add(outcome)
            asking.last = outcome
            self._note(outcome)
            return outcome

        try:
            outcome = await attempt()
            if worth_another(outcome, asking.tries, policy):
                outcome = await persist(outcome, attempt, asking.tries, policy, self._sleep)
        except Unaffordable:
            if asking.last is None:
                raise
            # A call whose next try cannot be bought is the failure that it is by now.
            asking.unaffordable, outcome = True, asking.last
        return outcome

    def _note(self, outcome: Outcome) -> None:
        """Tell the gate and the streak, and stop the judge where it cannot go on."""
        if isinstance(outcome, Halt):
            self._halt(outcome.reason, outcome.do)
        if isinstance(outcome, RateLimited):
            self._gate.rate_limited(outcome.after_s)
        elif isinstance(outcome, Transient):
            self._gate.failed(trouble=self._streak.request_failed())
            if self._streak.outlasted:
                self._halt(f"nothing was answered for long: {outcome.message}", "run again later")
        elif isinstance(outcome, Answered):
            self._streak.success()
        else:
            self._streak.request_replied()

    def _halt(self, reason: str, do: str) -> None:
        given = f"judge {self._config.name!r} at {endpoint(self._config)}: {reason}"
        self._halted = (self._key.redact(given), do)
        self._stop_if_halted()

    def _stop_if_halted(self) -> None:
        if self._halted is not None:
            given, do = self._halted
            raise JudgeHalted(given, do=do)

    async def _send(self, asking: Asking, prompt: Prompt, form: WireForm) -> Outcome:
        """Send one request, within the total deadline."""
        self._stop_if_halted()
        if asking.requests and not await self._gate.again(asking.call):
            raise Unaffordable
        tokens = estimate_tokens(len(prompt))
        await pass_gate(self._gate, asking.call, tokens, self._stop_if_halted)
        enlarged = asking.tries.enlarged
        budget = self._config.max_tokens_retry if enlarged else self._config.max_tokens
        content = self._wire.body(prompt, form, budget)
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        asking.requests += 1
        started = time.perf_counter()
        try:
            # The SDKs' own timeouts are per read: a body that drips keeps a call open for ever.
            async with asyncio.timeout(self._config.timeout_s):
                received = await self._hedge.first_of(
                    partial(self._wire.send, body),
                    partial(self._send_again, asking, body, tokens),
                )
        except TimeoutError:
            message = f"no whole reply within {self._config.timeout_s:g} s"
            received = Transient(kind=FailureKind.TIMEOUT, message=message, maybe_paid=True)
        asking.latency_ms = (time.perf_counter() - started) * 1000
        if not isinstance(received, Received):
            asking.unknown_usage |= isinstance(received, Transient) and received.maybe_paid
            return received
        return self._understand(asking, received, prompt, form)

    async def _send_again(
        self, asking: Asking, body: bytes, tokens: int
    ) -> Received | Transient | Halt | None:
        """Send a request that is slow once more, where that can be bought: both count."""
        try:
            if not await self._gate.again(asking.call):
                return None
            await pass_gate(self._gate, asking.call, tokens, self._stop_if_halted)
        except (NotSent, JudgeHalted):
            return None
        # One of the two is broken off, and may be billed all the same.
        asking.requests, asking.unknown_usage = asking.requests + 1, True
        return await self._wire.send(body)

    def _understand(
        self, asking: Asking, received: Received, prompt: Prompt, form: WireForm
    ) -> Outcome:
        """Say what a response means, after keeping it."""
        whole = received.body.decode("utf-8", "replace")
        asking.request_id = received.headers.get(self._wire.request_id_header)
        try:
            body = parse(received.body)
        except ValueError as error:
            body = None
            if received.status == 200:
                asking.raw, asking.unknown_usage = whole, True
                return _no_json(whole, error)
        if received.status != 200 or dig(body, "error"):
            return classify(read_fault(received.status, body, whole), received.headers)
        usage = self._wire.usage(body)
        asking.usages.append(usage)
        asking.model = string(dig(body, "model")) or None
        self._gate.observed(received.headers, _counted(usage), estimate_tokens(len(prompt)))
        spoken = self._wire.spoken(body)
        if spoken is None:
            asking.raw = whole
            return Unusable(kind=FailureKind.INVALID, message="the reply has no message in it")
        asking.raw = raw_text(spoken, form.verdict, whole)
        outcome = verdict_of(spoken, form.verdict, len(self._template.criteria))
        if self._config.soft and isinstance(outcome, Answered):
            asking.soft = read_probabilities(spoken.text, spoken.tokens, form.verdict)
        if silently_cut(prompt.system + prompt.user, usage.input_tokens):
            return _cut_prompt(len(prompt), usage)
        return outcome

    def _conclude(self, asking: Asking, outcome: Outcome) -> Reply:
        """Turn the last outcome of a call into its reply; too many failures stop the judge."""
        reply = asking.reply(outcome, self._key, self._config.price)
        if reply.failure is not None:
            message = reply.message or ""
            if self._streak.call_failed(asking.call.key, reply.failure, message):
                reason = f"call after call fails: {message}"
                self._halt(reason, "mend what it says, then run again")
        return reply


def _counted(usage: Usage) -> int | None:
    """Count the tokens that fall under a limit: those read and those written."""
    if usage.input_tokens is None:
        return None
    return usage.input_tokens + (usage.output_tokens or 0)


def _no_json(whole: str, error: ValueError) -> Unusable:
    """Tell a page, which no judge wrote, from a reply that broke off."""
    if whole.lstrip().startswith("<"):
        return Unusable(kind=FailureKind.SERVER, message="the server sent a page, not a reply")
    return Unusable(kind=FailureKind.INVALID, message=f"the reply is no JSON ({error})")


def _cut_prompt(characters: int, usage: Usage) -> Refused:
    return Refused(
        kind=FailureKind.CONTEXT_LENGTH,
        message=f"the server counted {usage.input_tokens} input tokens for {characters} characters:"
        " it cut the prompt without a word; raise the server's context length",
    )
