"""Models that a recorded run has values of."""

from dataclasses import dataclass
from enum import StrEnum


class Colour(StrEnum):
    RED = "red"


@dataclass
class Item:
    sku: str
    quantity: int = 1


@dataclass
class Order:
    customer: str
    items: list[Item]
    total: float


class Outer:
    @dataclass
    class Inner:
        value: int


@dataclass(init=False)
class Odd:
    """A constructor that does not make it of its fields."""

    text: str

    def __init__(self, text: str) -> None:
        self.text = text.swapcase()
