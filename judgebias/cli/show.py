"""`judgebias show`: one comparison on the screen, as it is sent and as it was answered."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from judgebias.calls import Pair
from judgebias.cli.compared import Compared, Repeat, Said, compare, find_pair, open_run
from judgebias.config import WireJudge
from judgebias.verdicts import Order, unswap

_RULE = 78


def show_pair(place: str, name: str, judge: str) -> None:
    """Print a pair's prompts in both orders and, after a run, replies, slots and cell."""
    run = open_run(place)
    pair = find_pair(run, name)
    lines = [*_about(pair)]
    for compared in compare(run, pair, judge):
        lines += _judge(compared)
    for line in lines:
        typer.echo(line)


def _about(pair: Pair) -> Iterator[str]:
    yield f"pair {pair.pair_id} of task {pair.task}"
    told = {"model A": pair.model_a, "model B": pair.model_b, "gold": pair.gold}
    known = ", ".join(f"{what}: {value}" for what, value in told.items() if value)
    if known:
        yield f"{known} (never sent)"


def _judge(compared: Compared) -> Iterator[str]:
    config = compared.judge
    yield ""
    yield f"judge {config.name} ({_who(compared)})"
    yield "=" * _RULE
    if compared.notice:
        yield f"NOTE: {compared.notice}"
    if compared.form:
        yield f"verdict form: {compared.form}"
    for repeat in compared.repeats:
        yield from _repeat(repeat, several=len(compared.repeats) > 1)


def _who(compared: Compared) -> str:
    config = compared.judge
    if not isinstance(config, WireJudge):
        return config.provider
    return f"{config.provider}, {config.model}, template {config.template}"


def _repeat(repeat: Repeat, *, several: bool) -> Iterator[str]:
    which = f" of repeat {repeat.number}" if several else ""
    if not repeat.prompts:
        yield f"no prompt{which}: this judge is given the texts themselves"
    else:
        yield from _titled(f"system prompt{which}, the same in both orders")
        yield repeat.prompts[Order.AB].system
        for order in Order:
            yield from _titled(f"prompt in order {order}{which}")
            yield repeat.prompts[order].user
    for order in Order:
        yield from _titled(f"reply in order {order}{which}")
        said = repeat.said.get(order)
        yield from ["not asked yet"] if said is None else _said(said, order)
    yield from _titled(f"verdict{which}")
    yield _verdict(repeat)


def _said(said: Said, order: Order) -> Iterator[str]:
    if said.raw is not None:
        yield said.raw
    answered = f" by {said.model}" if said.model else ""
    if said.slot is None:
        yield f"-> failed: {said.failure}: {said.message} ({said.time}{answered})"
        return
    shown = f"answer {said.slot.value}" if said.slot.value != "tie" else "tie"
    yield f"-> {shown}, which is {unswap(said.slot, order)} ({said.time}{answered})"
    if any(p is not None for p in said.probabilities.values()):
        words = (
            f"{name.removeprefix('p_')} {'not listed' if p is None else f'{p:.4f}'}"
            for name, p in said.probabilities.items()
        )
        yield f"   probabilities: {', '.join(words)}"


def _verdict(repeat: Repeat) -> str:
    if repeat.cell is None:
        return "none: it takes a verdict in both orders"
    return f"{repeat.cell}; final verdict: {repeat.winner}"


def _titled(title: str) -> Iterator[str]:
    yield ""
    yield f"--- {title} ".ljust(_RULE, "-")
