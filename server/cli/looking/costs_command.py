"""`madeleine costs`: what language models cost (spec O10), read from the ledger beside a running host."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from madeleine.memory.operations.values import CostTotal
from madeleine.server.cli.local_commands import parse_moment_option
from madeleine.server.cli.looking.graph_command import print_table_if_any_rows
from madeleine.server.cli.output import print_json
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import open_ledger_without_index

_COST_COLUMN_HEADINGS = ("calls", "tokens in", "tokens out", "US dollars")


async def costs_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Raises `InvalidInput` for what is not a date, and where there is no memory."""
    since = parse_moment_option("--since", arguments.since)
    until = parse_moment_option("--until", arguments.until, to_end=True)
    async with open_ledger_without_index(settings, create=False) as ledger:
        totals = await ledger.costs.totals(arguments.by, agent_id=arguments.being, since=since, until=until)
    if arguments.json:
        print_json({"by": arguments.by, "costs": [total.model_dump(mode="json") for total in totals]})
        return
    if not totals:
        print("No call of a language model is recorded here.")
        return
    print_table_if_any_rows(
        "",
        (arguments.by, *_COST_COLUMN_HEADINGS),
        map(_cost_table_row, (*totals, _sum_cost_totals(totals)) if len(totals) > 1 else totals),
    )
    if unpriced := sum(total.unpriced_calls for total in totals):
        calls = "1 call" if unpriced == 1 else f"{unpriced} calls"
        print(f"The price of {calls} is not known, and is missing from the dollars.")


def _sum_cost_totals(totals: Sequence[CostTotal]) -> CostTotal:
    prices = [total.usd for total in totals if total.usd is not None]
    return CostTotal(
        group="all",
        calls=sum(total.calls for total in totals),
        input_tokens=sum(total.input_tokens for total in totals),
        output_tokens=sum(total.output_tokens for total in totals),
        usd=sum(prices) if prices else None,
        unpriced_calls=sum(total.unpriced_calls for total in totals),
        first=min(total.first for total in totals),
        last=max(total.last for total in totals),
    )


def _cost_table_row(total: CostTotal) -> Sequence[str]:
    price = "unknown" if total.usd is None else f"{total.usd:.4f}"
    return total.group, f"{total.calls:,}", f"{total.input_tokens:,}", f"{total.output_tokens:,}", price
