"""Probes of a server's collectives: what its settings select, at the sizes of its model, before the model is loaded."""

from runners.server_probes.batch import ProbeOrder, run_probe_batch
from runners.server_probes.orders import server_orders
from runners.server_probes.python import probe_server

__all__ = ["ProbeOrder", "probe_server", "run_probe_batch", "server_orders"]
