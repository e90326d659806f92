"""The workflows of the shop: orders, shipments, refunds, a catalogue and a report.

Nothing here leaves the process: code that would call a payment provider or a courier waits a little, and fails
realistically often.
"""

import asyncio
import logging
import random  # noqa: TID251  randomness of customers, not of ids
from dataclasses import dataclass, field
from typing import Any, Literal

from ...core.errors import NonRetryable
from ...sdk.workflow.context import Context
from ...sdk.workflow.current import current_step
from ...sdk.workflow.decorator import workflow
from ...sdk.workflow.retry import Retry
from ...sdk.workflow.signals import Signal
from ...sdk.workflow.workflow import Workflow

logger = logging.getLogger("shop")

APPROVAL_FROM = 250.0
_TIMEOUTS = 0.25
_DECLINED = 0.12
_LOST = 0.1


@dataclass
class Item:
    sku: str
    quantity: int = 1


@dataclass
class Order:
    """What a customer has put into the basket."""

    customer: str
    items: list[Item]
    total: float
    delivery: Literal["standard", "express"] = "standard"
    note: str | None = None


@dataclass
class Approval:
    """May this order go out?"""

    approved: bool
    note: str = ""


@dataclass
class Refund:
    order: str
    amount: float


@dataclass
class Shipment:
    order: str
    address: str
    express: bool = False


@dataclass
class Catalogue:
    products: int = 60
    languages: list[str] = field(default_factory=lambda: ["en", "de"])


class CardDeclined(NonRetryable):
    """Another attempt would be declined too."""

    __module__ = "shop"  # errors of the kagzi package are recorded by the name of their base


approve_order = Signal("approve-order", Approval)


async def _takes(seconds: float) -> None:
    await asyncio.sleep(random.uniform(0.5, 1.5) * seconds)


def _happens(share: float) -> bool:
    return random.random() < share


async def reserve(item: Item) -> str:
    await _takes(0.2)
    return f"{item.quantity} x {item.sku}"


async def charge_card(customer: str, total: float) -> dict[str, str]:
    logger.info("charging %.2f EUR", total)
    await _takes(0.6)
    if _happens(_TIMEOUTS):
        logger.warning("the provider did not answer")
        raise TimeoutError("the payment provider did not answer within 600 ms")
    if _happens(_DECLINED):
        raise CardDeclined(f"the card of {customer} was declined")
    logger.info("charged")
    return {"transaction": f"tx_{current_step().run_id[-8:]}", "amount": f"{total:.2f} EUR"}


async def mail(to: str, text: str) -> None:
    await _takes(0.3)


async def text_message(to: str, text: str) -> None:
    await _takes(0.2)
    if _happens(_TIMEOUTS):
        raise ConnectionError("429 slow down")


async def call_courier(shipment: Shipment) -> str:
    await _takes(0.5)
    return f"shipment-{random.randrange(10**6):06}"


async def drive(number: str) -> str:
    await _takes(1.0)
    if _happens(_LOST):
        raise ConnectionError(f"{number} was not scanned at the depot")
    return "handed over"


async def index_product(number: int) -> int:
    await _takes(0.8)
    if number % 41 == 0 and current_step().attempt == 1:
        raise ConnectionError(f"product {number} has no picture yet")
    return number


async def count_sales(day: str) -> dict[str, float]:
    await _takes(0.5)
    return {"day": len(day), "orders": 42, "turnover": 5_170.5}


@workflow("ship-order")
async def ship_order(ctx: Context, shipment: Shipment) -> str:
    """One shipment, from the shelf to the door."""
    number = await ctx.step("call-courier").run(call_courier, shipment)
    ctx.set_status(f"{number} is on its way", progress=0.3)
    await ctx.sleep("in-transit", "10s" if shipment.express else "45s")
    await ctx.step("hand-over", retry=Retry.exponential(6, initial="3s")).run(drive, number)
    return number


@workflow("process-order", signals=[approve_order])
async def process_order(ctx: Context, order: Order) -> dict[str, str]:
    """An order: reserve, charge, ask a person if it is expensive, ship, and tell the customer."""
    ctx.set_status("reserving", progress=0.1)
    await ctx.map("reserve", order.items, reserve, key=lambda item: item.sku)
    ctx.set_status("charging", progress=0.3)
    payment = await ctx.step("charge-card", retry=Retry.exponential(5, initial="2s", max="30s")).run(
        charge_card, order.customer, order.total
    )
    if order.total >= APPROVAL_FROM:
        ctx.set_status(f"{order.total:.2f} EUR for {order.customer}: may it go out?", progress=0.5)
        answer = await ctx.wait_for(approve_order, timeout="1 day", default=Approval(approved=False, note="too late"))
        if not answer.approved:
            await ctx.step("give-back").run(mail, order.customer, f"not shipped: {answer.note}")
            return {"status": "rejected", **payment}
    ctx.set_status("shipping", progress=0.7)
    shipment = Shipment(order=ctx.workflow_id, address=order.customer, express=order.delivery == "express")
    number = await ctx.child(ship_order, shipment, id=f"{ctx.workflow_id}/shipment")
    await ctx.parallel(
        ctx.step("mail").run(mail, order.customer, number),
        ctx.step("text-message", retry=Retry.attempts(3)).run(text_message, order.customer, number),
    )
    return {"status": "delivered", "shipment": number, **payment}


@workflow("refund")
async def refund(ctx: Context, request: Refund) -> str:
    """Money goes back, unless the bank says no."""
    return (
        await ctx.step("transfer", retry=Retry.exponential(8, initial="5s")).run(
            charge_card, request.order, -request.amount
        )
    )["transaction"]


@workflow("reindex-catalogue")
async def reindex_catalogue(ctx: Context, catalogue: Catalogue) -> int:
    """Every product once more: a slow fan-out."""
    done = 0
    for language in catalogue.languages:
        ctx.set_status(f"indexing {language}", progress=done / (catalogue.products * len(catalogue.languages)))
        indexed = await ctx.map(f"index-{language}", range(catalogue.products), index_product, limit=5)
        done += len(indexed)
    return done


@workflow("daily-report")
async def daily_report(ctx: Context) -> dict[str, float]:
    """What was sold."""
    day = (ctx.scheduled_at or ctx.now()).date().isoformat()
    sales = await ctx.step("count-sales").run(count_sales, day)
    await ctx.step("mail").run(mail, "owner@example.com", str(sales))
    return sales


WORKFLOWS: list[Workflow[Any, Any]] = [process_order, ship_order, refund, reindex_catalogue, daily_report]
