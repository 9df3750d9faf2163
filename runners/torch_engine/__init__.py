"""The torch engine: a tensor-parallel mixture-of-experts decoder in bare torch.distributed, readable in one sitting.

``python -m runners.torch_engine --help`` lists its flags, ``README.md`` beside this file the result it writes.
Modules, in the order in which a launch meets them: ``cli`` and ``config`` (flags), ``launcher`` (fork and watch the
ranks), ``rank`` (one rank's life), ``collectives`` and ``expert_parallel`` (how ranks talk), ``weights``,
``kv_cache`` and ``model`` (the decoder), ``speculation`` and ``graphs`` (one decoding step), ``serving`` and
``measurement`` (requests and figures), ``result`` (the JSON file); ``probe`` runs only the collectives, ``matrix`` a
table of launches.

This file imports nothing, so that the package needs the standard library and torch, and no more.
"""
