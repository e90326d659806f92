"""Workflows whose step pays for an order in the shop's own database, and is killed between its commit and Kagzi's.

A body that is to be killed says where it is, in a file, and waits. KAGZI_TEST_SHOP names the database,
KAGZI_TEST_LEDGER the file; with KAGZI_TEST_PLAIN nothing is recorded in the transaction, to show that doubles are
seen.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import kagzi
from kagzi import Context, step, workflow

SHOP = os.environ.get("KAGZI_TEST_SHOP", "")
LEDGER = os.environ.get("KAGZI_TEST_LEDGER", "")
PLAIN = "KAGZI_TEST_PLAIN" in os.environ
DRIVERS = ("asyncpg", "psycopg", "sqlalchemy", "psycopg-sync", "sqlalchemy-sync")
FOR_EVER_S = 3_600
PAY = "insert into payments (order_id, paid_by) values ('{}', {})"


@dataclass
class Order:
    id: str
    driver: str
    killed: str = ""  # "between": after the shop's commit; "inside": before it


@dataclass
class Receipt:
    order: str
    paid_by: int  # the process


class NotRecorded:
    """In place of an effect: each attempt does the work."""

    done = False

    def record(self, result: Any) -> None: ...


def note(event: str, order: Order) -> None:
    line = json.dumps({"event": event, "order": order.id, "pid": os.getpid()}) + "\n"
    ledger = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, line.encode())
    finally:
        os.close(ledger)


def is_first(order: Order, where: str) -> bool:
    """Whether the body is to be killed here: each order once, by a file that only one attempt can make."""
    if order.killed != where:
        return False
    try:
        os.close(os.open(f"{LEDGER}.{order.id}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    note(where, order)
    return True


@asynccontextmanager
async def connected(driver: str) -> AsyncIterator[Any]:
    if driver == "asyncpg":
        connection = await asyncpg.connect(SHOP)
        try:
            yield connection
        finally:
            await connection.close()
    elif driver == "psycopg":
        async with await psycopg.AsyncConnection.connect(SHOP) as connection:
            yield connection
    else:
        engine = create_async_engine(SHOP.replace("postgresql://", "postgresql+asyncpg://", 1))
        try:
            async with AsyncSession(engine) as session:
                yield session
        finally:
            await engine.dispose()


@asynccontextmanager
async def _recording(connection: Any) -> AsyncIterator[Any]:
    if PLAIN:
        yield NotRecorded()
        if hasattr(connection, "commit"):
            await connection.commit()
    else:
        async with kagzi.effect(connection) as effect:
            yield effect


@step
async def charge(order: Order) -> Receipt:
    async with connected(order.driver) as connection:
        async with _recording(connection) as effect:
            if effect.done:
                note("read", order)
                return effect.result(Receipt)
            pay = PAY.format(order.id, os.getpid())
            await connection.execute(sqlalchemy.text(pay) if order.driver == "sqlalchemy" else pay)
            receipt = Receipt(order.id, os.getpid())
            effect.record(receipt)
            if is_first(order, "inside"):
                await asyncio.sleep(FOR_EVER_S)
        note("committed", order)
        if is_first(order, "between"):
            await asyncio.sleep(FOR_EVER_S)
        return receipt


@step
def charge_in_thread(order: Order) -> Receipt:
    if order.driver == "psycopg-sync":
        with psycopg.connect(SHOP) as connection:
            return _charged(connection, order)
    engine = sqlalchemy.create_engine(SHOP.replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        with Session(engine) as session:
            return _charged(session, order)
    finally:
        engine.dispose()


def _charged(connection: Any, order: Order) -> Receipt:
    with kagzi.effect(connection) as effect:
        if effect.done:
            note("read", order)
            return effect.result(Receipt)
        pay = PAY.format(order.id, os.getpid())
        connection.execute(sqlalchemy.text(pay) if order.driver == "sqlalchemy-sync" else pay)
        receipt = Receipt(order.id, os.getpid())
        effect.record(receipt)
        if is_first(order, "inside"):
            time.sleep(FOR_EVER_S)
    note("committed", order)
    if is_first(order, "between"):
        time.sleep(FOR_EVER_S)
    return receipt


@workflow("pay")
async def pay_order(ctx: Context, order: Order) -> Receipt:
    return await (charge_in_thread if order.driver.endswith("-sync") else charge)(order)
