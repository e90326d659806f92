"""One adapter for each engine: its processes, how to start them, and the workloads that it can express."""

from bench.engines.absurd import Absurd
from bench.engines.base import Engine
from bench.engines.dbos import DbosPostgres, DbosSqlite
from bench.engines.kagzi import KagziEmbedded, KagziFourServers, KagziPostgres, KagziSqlite, KagziTwoServers
from bench.engines.openworkflow import OpenWorkflowPostgres, OpenWorkflowSqlite
from bench.engines.restate import Restate
from bench.engines.temporal import Temporal

KAGZI: tuple[type[Engine], ...] = (KagziPostgres, KagziSqlite, KagziEmbedded)
SEVERAL_SERVERS: tuple[type[Engine], ...] = (KagziTwoServers, KagziFourServers)
"""For W9, which is not part of a comparison with peers."""
PEERS: tuple[type[Engine], ...] = (
    OpenWorkflowPostgres,
    OpenWorkflowSqlite,
    Restate,
    DbosPostgres,
    DbosSqlite,
    Absurd,
    Temporal,
)
ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (*KAGZI, *SEVERAL_SERVERS, *PEERS)}
