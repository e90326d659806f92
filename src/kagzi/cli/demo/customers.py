"""The customers of the shop: they place orders, and answer most of the orders that wait for approval after a while."""

import asyncio
import random  # noqa: TID251  randomness of customers, not of ids
from contextlib import suppress

from ...core.errors import KagziError, NotFound, PreconditionFailed
from ...sdk.client.client import Kagzi
from ...sdk.client.run import Run
from .shop import (
    APPROVAL_FROM,
    Approval,
    Catalogue,
    Item,
    Order,
    Refund,
    approve_order,
    daily_report,
    process_order,
    refund,
    reindex_catalogue,
)

NAMES = ("ada", "grace", "alan", "barbara", "edsger", "radia", "dennis", "frances", "ken", "margaret", "tim", "karen")
SKUS = ("kettle", "teapot", "cup", "saucer", "spoon", "tin", "strainer", "honey", "lemon", "biscuits")
FIRST_ORDERS = 25
UNANSWERED = 6
"""This many orders are left for the user's inbox; the shop answers older ones itself."""


class Customers:
    """`every_s`: the mean time between two orders."""

    def __init__(self, client: Kagzi, *, every_s: float, seed: int | None = None) -> None:
        self._client = client
        self._every_s = every_s
        self._random = random.Random(seed)
        self._number = 0
        self._waiting: list[Run[dict[str, str]]] = []

    async def open(self) -> None:
        """Creates the schedules, a first batch of orders, and a catalogue that is being indexed."""
        schedules = self._client
        await schedules.schedule("daily-report").workflow(daily_report).cron("0 6 * * *", timezone="Europe/Berlin")
        await schedules.schedule("pulse").workflow(daily_report).every("2m")
        nightly = schedules.schedule("reindex-at-night").workflow(reindex_catalogue)
        await nightly.cron("30 2 * * 1-5", timezone="Europe/Berlin").input(Catalogue())
        await self._client.start(reindex_catalogue, Catalogue(), labels={"team": "search"})
        for _ in range(FIRST_ORDERS):
            await self._order()

    async def keep_ordering(self) -> None:
        """Runs until cancelled. If the server is unavailable, only the orders of that time are lost."""
        while True:
            await asyncio.sleep(self._random.expovariate(1 / self._every_s))
            with suppress(KagziError):
                await self._order()
                await self._answer()

    async def _order(self) -> None:
        choose = self._random
        self._number += 1
        customer = f"{choose.choice(NAMES)}@example.com"
        items = [Item(sku, choose.randint(1, 3)) for sku in choose.sample(SKUS, choose.randint(1, 4))]
        total = round(choose.lognormvariate(4.6, 0.9), 2)
        order = Order(customer=customer, items=items, total=total)
        if choose.random() < 0.3:
            order.delivery = "express"
        labels = {"team": "shop", "country": choose.choice(("de", "fr", "it", "nl"))}
        run = await self._client.start(process_order, order, id=self._id("order"), labels=labels)
        if total >= APPROVAL_FROM:
            self._waiting.append(run)
        if choose.random() < 0.1:
            back = Refund(order=run.workflow_id, amount=round(total / 2, 2))
            await self._client.start(refund, back, id=self._id("refund"), labels={"team": "money"})
        if choose.random() < 0.02:
            await self._client.start(reindex_catalogue, Catalogue(products=30, languages=["en"]))

    async def _answer(self) -> None:
        while len(self._waiting) > UNANSWERED:
            run = self._waiting.pop(0)
            with suppress(NotFound, PreconditionFailed):  # it ended before its approval
                await run.signal(approve_order, Approval(approved=self._random.random() < 0.8, note="by the shop"))

    def _id(self, kind: str) -> str:
        return f"{kind}-{self._random.randrange(36**3):04}-{self._number}"
