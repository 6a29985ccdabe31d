"""torchrun's options as ``breakscope scan`` takes them: the common ones by name, any other as text."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from breakscope.errors import UsageError

NprocPerNode = Annotated[
    str | None,
    typer.Option(metavar="N|gpu|cpu|auto", help="Launch N ranks on this machine with torchrun."),
]
Nnodes = Annotated[
    str | None, typer.Option(metavar="N|MIN:MAX", help="Number of nodes of the job (default 1).")
]
NodeRank = Annotated[
    int | None, typer.Option(metavar="N", help="Number of this node, if there is no rendezvous.")
]
RdzvId = Annotated[
    str | None, typer.Option(metavar="NAME", help="Unique name of the job; the same on every node.")
]
RdzvBackend = Annotated[
    str | None, typer.Option(metavar="NAME", help="Rendezvous backend: c10d, static or etcd-v2.")
]
RdzvEndpoint = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Address where the nodes meet.")]
MaxRestarts = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Number of restarts before the job counts as failed.")
]
Others = Annotated[
    str | None,
    typer.Option(
        "--torchrun",
        metavar="OPTIONS",
        help="More options for torchrun, in quotes: '--monitor-interval 1 --tee 3'.",
    ),
]


def options(
    nproc_per_node: str | None,
    *,
    nnodes: str | None,
    node_rank: int | None,
    rdzv_id: str | None,
    rdzv_backend: str | None,
    rdzv_endpoint: str | None,
    max_restarts: int | None,
    others: str | None,
) -> list[str] | None:
    """What to give to torchrun; None where the script is to run as one process.

    Raises:
        UsageError: if an option needs another one.
    """
    named = {
        "--nnodes": nnodes,
        "--node-rank": node_rank,
        "--rdzv-id": rdzv_id,
        "--rdzv-backend": rdzv_backend,
        "--rdzv-endpoint": rdzv_endpoint,
        "--max-restarts": max_restarts,
    }
    given = [word for name, value in named.items() if value is not None for word in (name, str(value))]
    try:
        more = shlex.split(others or "")
    except ValueError as error:
        raise UsageError(f"--torchrun {others!r} cannot be read: {error}") from None
    if nproc_per_node is None:
        if given or more:
            raise UsageError(f"{(given or ['--torchrun'])[0]} needs --nproc-per-node")
        return None
    alone = nnodes in (None, "1", "1:1")
    if not alone and rdzv_id is None:
        # Each node leaves a report of its own ranks; the name is what makes them one job again.
        raise UsageError("--nnodes needs --rdzv-id: a name for the job, the same on every node")
    met = rdzv_endpoint is not None or rdzv_backend is not None or node_rank is not None
    if alone and not met and "--standalone" not in more and not any("master" in word for word in more):
        # Without it torchrun takes one fixed port, which another job on this machine may have.
        given.append("--standalone")
    return ["--nproc-per-node", nproc_per_node, *given, *more]
