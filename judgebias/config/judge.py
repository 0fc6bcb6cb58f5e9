"""One judge of a run: who it is (its identity) and how it may be asked (its limits)."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from judgebias.config.values import (
    JsonObject,
    JudgeName,
    PathText,
    Seconds,
    Seed,
    ServerAddress,
    Weight,
    Width,
)


class Strict(BaseModel):
    """A frozen model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Price(Strict):
    """USD per million tokens."""

    input: float = Field(ge=0, le=1e9)
    output: float = Field(ge=0, le=1e9)
    cached_input: float | None = Field(default=None, ge=0, le=1e9)
    """Absent: cached tokens are priced as input."""


class _Judge(Strict):
    """What all judges have; the fields named in `LIMITS` may change between resumes."""

    LIMITS: ClassVar[frozenset[str]] = frozenset(
        {
            "name",
            "limit_group",
            "max_in_flight",
            "requests_per_minute",
            "tokens_per_minute",
            "timeout_s",
            "hedge",
            "max_attempts",
            "max_tries_total",
            "price",
            "api_key_env",
            "api_key_file",
            "latency_s",
        }
    )

    name: JudgeName = Field(min_length=1)
    """Unique in a run; the `judge` column of every table."""
    family: str = ""
    """Who made the judge; "" = guessed from the model name."""
    requests_per_minute: float = Field(default=0, ge=0, le=1e12)
    """0 = learned from headers and 429s."""
    tokens_per_minute: float = Field(default=0, ge=0, le=1e12)
    max_in_flight: int = Field(default=0, ge=0, le=100_000)
    """Calls under way at once in the whole cluster; 0 = learned."""
    limit_group: str = ""
    """Judges that share a limit; "" = same host, key and model."""
    timeout_s: Seconds = Field(default=300, gt=0)
    """Total deadline of one attempt, seconds."""
    max_attempts: int = Field(default=6, ge=1, le=10_000)
    """Tries of a call in one run of the command."""
    max_tries_total: int = Field(default=20, ge=1, le=1_000_000)
    """Tries of a call over all resumes; then it is a reject."""
    price: Price | None = None
    """Absent = unknown, never 0."""


class WireJudge(_Judge):
    """A judge behind an HTTP interface, asked through its vendor's own SDK."""

    provider: Literal["openai", "anthropic"]
    model: str = Field(min_length=1)
    template: PathText = "pairwise"
    """A built-in template's name, or a file."""
    rubric: str = ""
    """Text, or a file; "" = the built-in rubric."""
    criteria: tuple[str, ...] = ()
    """Yes/no questions for the criteria template."""
    api_key_env: str = ""
    """The variable that holds the key; "" = the vendor's usual one."""
    api_key_file: PathText = ""
    """A file that holds the key, instead of a variable."""
    base_url: ServerAddress = ""
    """A compatible server; "" = the vendor's own."""
    verdict: Literal["auto", "json_schema", "tool", "text"] = "auto"
    max_tokens: int = Field(default=4096, ge=1, le=100_000_000)
    """Output budget of a call, thinking included."""
    max_tokens_retry: int = Field(default=0, ge=0, le=100_000_000)
    """A larger budget for one more try after a cut-off reply; 0 = none."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Absent = the provider's default."""
    hedge: float = Field(default=0.0, ge=0, le=0.5)
    """Share of the calls, at most, that are sent once more where they take three times as long as
    usual; 0 = none. Both requests count."""
    soft: bool = False
    """Verdict probabilities from token log-probabilities."""
    mode: Literal["online", "batch"] = "online"
    extra: JsonObject = Field(default_factory=dict)
    """Passed through to the request body."""

    @model_validator(mode="after")
    def _consistent(self) -> WireJudge:
        if self.api_key_env and self.api_key_file:
            msg = "give api_key_env or api_key_file, not both"
            raise ValueError(msg)
        if self.max_tokens_retry and self.max_tokens_retry <= self.max_tokens:
            msg = f"max_tokens_retry must be larger than max_tokens ({self.max_tokens}), or 0"
            raise ValueError(msg)
        if self.soft and self.provider == "anthropic":
            msg = "soft verdicts need token log-probabilities, which Anthropic does not give"
            raise ValueError(msg)
        if self.soft and self.verdict == "tool":
            msg = 'soft verdicts need verdict = "json_schema" or "text": tool arguments carry none'
            raise ValueError(msg)
        if self.soft and self.criteria:
            msg = "soft verdicts need one verdict word, which criteria do not have"
            raise ValueError(msg)
        return self


class SimulatedJudge(_Judge):
    """A judge with planted biases; its formula is in `judgebias.judges.simulated`."""

    provider: Literal["simulated"]
    quality: Weight = 1.0
    """Weight of the quality difference of the two answers."""
    length_weight: Weight = 0.0
    offset: Weight = 0.0
    """Pull towards the first slot, in logits of the latent score."""
    offset_long: Weight | None = None
    """Pull instead of `offset` where both answers together exceed `long_chars`."""
    long_chars: int = Field(default=2000, ge=0, le=2**40)
    family_bonus: Weight = 0.0
    noise: Width = 1.0
    tie_width: Width = 0.0
    failure_rate: float = Field(default=0.0, ge=0, le=1)
    latency_s: Seconds = 0.0
    seed: Seed = 0


class ReplayJudge(_Judge):
    """A judge that repeats recorded verdicts."""

    provider: Literal["replay"]
    path: PathText = Field(min_length=1)
    """Verdict records: file, glob or directory; relative to the run file."""
    recorded_as: str = ""
    """The judge's name in the records; "" = `name`."""


class FunctionJudge(_Judge):
    """A judge that is a Python function of the user's."""

    provider: Literal["function"]
    call: str = Field(pattern=r"^[\w.]+:[\w.]+$")
    """`module:name`, with (first, second) or (question, first, second)."""


JudgeConfig = Annotated[
    WireJudge | SimulatedJudge | ReplayJudge | FunctionJudge, Field(discriminator="provider")
]


def identity(judge: JudgeConfig, *, template_text: str = "", endpoint: str = "") -> dict[str, Any]:
    """Everything that can change what the judge says, so a resume can show what differs.

    Parameters
    ----------
    judge
        The judge as configured.
    template_text
        The template and rubric as they will be sent, so that an edited file counts as a change.
    endpoint
        The effective host and path, without user info and query.
    """
    fields = judge.model_dump(mode="json", exclude=set(judge.LIMITS))
    fields["judge"] = judge.name
    if template_text:
        fields["template_text"] = hashlib.blake2b(template_text.encode()).hexdigest()[:32]
    if endpoint:
        fields["base_url"] = endpoint
    return fields


def fingerprint(identity_fields: dict[str, Any]) -> bytes:
    """Sixteen bytes that name a judge by everything that can change its verdicts."""
    text = json.dumps(identity_fields, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
