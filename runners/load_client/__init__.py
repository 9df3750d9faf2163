"""The load client: sends a workload to a server that is ready and says what came back."""

from runners.load_client.job import Api, LevelLoad, LoadJob, LoadResult, RequestRecord, Speculation

__all__ = ["Api", "LevelLoad", "LoadJob", "LoadResult", "RequestRecord", "Speculation"]
