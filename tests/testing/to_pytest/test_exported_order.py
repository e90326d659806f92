"""A recorded run of process-order, which failed.

Written by: kagzi export declined --pytest --code kagzi.cli.demo.shop

The test replays the run: the code of the workflow runs, and its calls get what is
recorded below; no step is executed. It fails if the workflow makes other calls, makes
them with other arguments, or ends differently. Edit it as you like.

It contains recorded values in plain text: input, results, errors and signals.
"""

from kagzi import ErrorDetail, ErrorKind
from kagzi.cli.demo.shop import Item, Order, process_order
from kagzi.testing import RecordedRun


def test_declined() -> None:
    run = RecordedRun(
        process_order,
        Order(
            customer="ada@example.com",
            items=[Item(sku="kettle", quantity=2), Item(sku="tea", quantity=1)],
            total=300.0,
            delivery="standard",
            note=None,
        ),
        workflow_id="declined",
        run_id="01a1e64b-99e0-751e-8de2-a1d7dda164cc",
        created_at="2026-11-16T21:37:56.714386Z",
    )
    run.step(
        "reserve[kettle]",
        args=[Item(sku="kettle", quantity=2)],
        returns="2 x kettle",
        at="0.004669s",
    )
    run.step(
        "reserve[tea]",
        args=[Item(sku="tea", quantity=1)],
        returns="1 x tea",
        at="0.004669s",
    )
    run.step(
        "charge-card",
        args=["ada@example.com", 300.0],
        raises=ErrorDetail(
            kind=ErrorKind.PERMANENT,
            message="the card of ada@example.com was declined",
            type="shop.CardDeclined",
            bases=("kagzi.NonRetryable", "kagzi.KagziError"),
            non_retryable=True,
        ),
        at="0.021898s",
    )

    replay = run.replay()
    assert replay.outcome == "failed"
    assert replay.error is not None
    assert replay.error.text == "CardDeclined: the card of ada@example.com was declined"
