"""Converts page requests and page info of lists."""

from typing import Any

from ...engine import Page, PageAsk
from ...v1 import common_pb2 as pb


def read_page(message: pb.PageRequest) -> PageAsk:
    return PageAsk(size=message.page_size, token=message.page_token, count=message.include_total_count)


def write_page(page: Page[Any]) -> pb.PageInfo:
    return pb.PageInfo(
        next_page_token=page.next_token,
        has_more=page.has_more,
        total_count=page.total or 0,
        prev_page_token=page.prev_token,
        total_is_capped=page.total_is_capped,
    )
