"""The end of `sglang/srt/server_args.py` in an environment that only seems to hold SGLang."""


class Resolved:
    """Arguments that show themselves once they are resolved."""

    def __init__(self, args):
        self._args, self._shown = vars(args), {}

    def resolve_once(self):
        """Resolve: a chain of n steps verifies n + 1 tokens."""
        self._shown = dict(self._args)
        if self._args["speculative_num_steps"]:
            self._shown["speculative_num_draft_tokens"] = int(self._args["speculative_num_steps"]) + 1

    def resolved_dict(self):
        """Return what was resolved."""
        return self._shown


def prepare_server_args(argv):
    """Parse the arguments of a launch."""
    import argparse

    return Resolved(add(argparse.ArgumentParser()).parse_args(argv))  # noqa: F821 - stands above in that file
