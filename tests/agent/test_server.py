"""A study of a real server: put together from options, file and base command, and checked against what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import UsageError
from agent.home import Home
from agent.spec import load_spec
from agent.studies import Plan, make_plan
from search_spaces import SpecificationError
from tests.agent.conftest import Installed
from tests.support.installed_engine import install_engine


class Planner:
    """Plans studies of the installed engines."""

    def __init__(self, installed: Installed, home: Path) -> None:
        self.installed, self._home = installed, Home(home)

    def plan(self, engine: str | None = "sglang", **given: object) -> Plan:
        """Plan a study on two CPU ranks, unless it says otherwise; None leaves a key away."""
        found = {
            "engine": engine,
            "engine_python": self.installed.vllm if engine == "vllm" else self.installed.sglang,
            "model": self.installed.model,
            "device": "cpu",
            **given,
        }
        return make_plan(load_spec(None, {key: value for key, value in found.items() if value is not None}), self._home)

    def command(self, command: str, engine: str | None = "sglang", **given: object) -> Plan:
        """Plan a study that begins at a command."""
        return self.plan(engine, base_cmd=command, **{"model": None, "engine_python": None, **given})


@pytest.fixture
def planner(installed: Installed, tmp_path: Path) -> Planner:
    """Plans, with nothing written."""
    return Planner(installed, tmp_path / "home")


def test_the_study_launches_what_the_user_named(planner: Planner) -> None:
    """Model, draft, Python, ranks, flags and variables stay fixed through the study."""
    plan = planner.plan(
        draft=planner.installed.draft,
        tp=8,
        options={"load-format": "dummy"},
        environment={"SGLANG_DEBUG_SYMM_MEM": "1"},
    )
    settings = plan.manifest.settings.engine
    assert (settings.model, settings.draft_model) == (planner.installed.model, planner.installed.draft)
    assert (settings.python, settings.num_ranks) == (planner.installed.sglang, 8)
    assert (settings.options, settings.variables) == ({"load-format": "dummy"}, {"SGLANG_DEBUG_SYMM_MEM": "1"})
    assert plan.manifest.space.default_on(plan.manifest.facts)["speculative_algorithm"] == "EAGLE3"


def test_engine_and_model_are_facts_and_software_is_that_of_the_engine(planner: Planner) -> None:
    """A dead end of SGLang 0.5.16 hangs on its version, its model and the torch beside it, not on ours."""
    facts = planner.plan(draft=planner.installed.draft, tp=4).manifest.facts
    assert facts["engine_version"] == "sglang 0.5.16"
    assert (facts["model"], facts["draft_model"]) == (planner.installed.model, planner.installed.draft)
    assert (facts["num_experts"], facts["draft_method"], facts["num_ranks"]) == (64, "eagle3", 4)
    assert (facts["torch"], facts["cuda"]) == ("9.9.0", "99.1")
    assert {("sglang", "0.5.16"), ("torch", "9.9.0")} <= set(facts["packages"].items())  # type: ignore[attr-defined]
    assert {"hostname", "gpu_arch", "memory_bytes"} <= facts.keys()
    assert len(str(facts)) < 3000


def test_what_the_version_cannot_be_told_is_left_out_and_kept_for_the_reader(planner: Planner) -> None:
    """The PCIe-IPC all-reduce came with 0.5.21."""
    plan = planner.plan()
    assert "pcie_ipc" not in plan.manifest.space.parameters["allreduce"].domain
    assert plan.server is not None
    assert "SGLANG_ENABLE_PCIE_IPC_ALLREDUCE" in plan.server.unavailable["allreduce"]["pcie_ipc"]
    assert "custom" in plan.manifest.space.parameters["allreduce"].domain


def test_a_base_command_is_where_the_search_starts(planner: Planner) -> None:
    """Its parameters are the default, what it says besides stays fixed, and the notes tell what became of the rest."""
    plan = planner.command(
        f"NCCL_DEBUG=WARN {planner.installed.sglang} -m sglang.launch_server --model-path {planner.installed.model} "
        "--tp 2 --port 30000 --load-format dummy --mem-fraction-static 0.83 --chunked-prefill-size 4096"
    )
    settings, space = plan.manifest.settings.engine, plan.manifest.space
    assert (settings.model, settings.num_ranks, settings.python) == (
        planner.installed.model,
        2,
        planner.installed.sglang,
    )
    assert settings.options == {"load-format": "dummy", "mem-fraction-static": "0.83"}
    assert settings.variables == {"NCCL_DEBUG": "WARN"}
    assert space.default_on(plan.manifest.facts)["chunked_prefill_size"] == 4096
    assert space.parameters["mem_fraction_static"].domain == ("auto",)
    assert plan.server is not None
    assert "--port is chosen by the agent" in plan.server.notes


def test_a_base_command_names_the_engine(planner: Planner) -> None:
    """Nobody has to say --engine beside it."""
    command = f"{planner.installed.vllm} -m vllm.entrypoints.openai.api_server --model {planner.installed.model}"
    plan = planner.command(command, engine=None)
    assert plan.manifest.settings.engine.engine == "vllm"
    assert plan.manifest.settings.name == "vllm"


def test_what_the_study_says_itself_goes_before_its_base_command(planner: Planner) -> None:
    """An option is a decision; the command is where it comes from."""
    command = (
        f"{planner.installed.sglang} -m sglang.launch_server --model-path /gone --tp 2 --chunked-prefill-size 4096"
    )
    plan = planner.command(command, model=planner.installed.model, tp=4, pin={"chunked_prefill_size": "8192"})
    assert plan.manifest.settings.engine.num_ranks == 4
    assert plan.manifest.space.parameters["chunked_prefill_size"].domain == (8192,)


def test_without_a_draft_the_plan_says_what_that_means(planner: Planner) -> None:
    """The methods that need one are refused before a launch; a user should know before the search."""
    assert any("no draft model" in note for note in planner.plan().server.notes)  # type: ignore[union-attr]


def test_a_folder_of_an_environment_is_as_good_as_its_python(planner: Planner) -> None:
    """People know where they made it."""
    folder = str(Path(planner.installed.vllm).parents[1])
    assert planner.plan("vllm", engine_python=folder).manifest.settings.engine.python == planner.installed.vllm


def test_an_engine_at_hand_is_found(planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python beside the engine's own program, as in an environment that is active."""
    python = Path(install_engine(tmp_path, "sglang", "0.5.16"))
    program = python.with_name("sglang")
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{python.parent}:/usr/bin:/bin")
    assert planner.plan(engine_python=None).manifest.settings.engine.python == str(python)


def test_a_variable_that_the_version_does_not_declare_is_set_and_noted(planner: Planner) -> None:
    """A misspelt one would be ignored without a word; but engines read some that they do not declare."""
    plan = planner.plan(environment={"SGLANG_DEBUG_SYM_MEM": "1"})
    assert plan.manifest.settings.engine.variables == {"SGLANG_DEBUG_SYM_MEM": "1"}
    assert any("Did you mean 'SGLANG_DEBUG_SYMM_MEM'" in note for note in plan.server.notes)  # type: ignore[union-attr]


def test_a_hidden_simulation_is_a_number(planner: Planner) -> None:
    """Options come as text; the runner takes tokens."""
    options = planner.plan(options={"simulate_acceptance": "2.5"}).manifest.settings.engine.options
    assert options == {"simulate_acceptance": 2.5}


@pytest.mark.parametrize(
    ("given", "fragments"),
    [
        ({"model": None}, ["--model", "give its folder"]),
        ({"model": "/no/such"}, ["--model", "there is no /no/such"]),
        ({"draft": "./no-such"}, ["--draft", "there is no"]),
        ({"draft": "models/drafts/near"}, ["--draft", "there is no models/drafts/near"]),
        ({"draft": "near/"}, ["--draft", "there is no near"]),
        ({"model": "~nobody-here/model"}, ["--model", "no path"]),
        ({"model": "x" * 5000}, ["--model", "no path"]),
        ({"model": "/usr"}, ["--model", "no config.json"]),
        ({"draft": __file__}, ["--draft", "is a file"]),
        ({"engine_python": "/no/such"}, ["--engine-python", "does not exist"]),
        ({"engine_python": "/bin/false"}, ["--engine-python", "/bin/false", "cannot be imported"]),
        ({"options": {"port": "1"}}, ["--option port", "chooses it"]),
        ({"options": {"tp": "2"}}, ["--option tp", "--tp"]),
        ({"options": {"model-path": "x"}}, ["--option model-path", "--model"]),
        ({"options": {"mem-fraction-statik": "0.8"}}, ["--option mem-fraction-statik", "'mem-fraction-static'"]),
        (
            {"options": {"mem-fraction-static": "0.8"}},
            ["--option mem-fraction-static", "--pin mem_fraction_static=auto"],
        ),
        ({"options": {"simulate_acceptance": "x"}}, ["--option simulate_acceptance", "tokens"]),
        ({"environment": {"NCCL_ALGO": "Ring"}}, ["--env NCCL_ALGO", "--pin nccl_algo=auto"]),
        ({"environment": {"A-B": "1"}}, ["--env", "no name of a variable"]),
        ({"pin": {"allreduce": "pcie_ipc"}}, ["--pin allreduce", "cannot be had"]),
        ({"space": "vllm"}, ["--space", "of vllm, not of sglang"]),
        ({"base_cmd": "ls -l"}, ["--base-cmd", "starts no engine"]),
        ({"base_cmd": "vllm serve x"}, ["--base-cmd", "--engine vllm"]),
        (
            {"base_cmd": "sglang serve x --chunked-prefill-size 4096", "exclude": {"chunked_prefill_size": ("4096",)}},
            ["--exclude chunked_prefill_size", "base command"],
        ),
        ({"base_cmd": "sglang serve x --no-such-option 4"}, ["--base-cmd", "no-such-option"]),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_named_with_its_remedy(
    planner: Planner, given: dict[str, object], fragments: list[str]
) -> None:
    """At plan time, not after minutes of loading a model."""
    with pytest.raises((UsageError, SpecificationError)) as caught:
        planner.plan(**given)
    assert not [fragment for fragment in fragments if fragment not in str(caught.value)], str(caught.value)


def test_a_pin_makes_room_for_a_fixed_option(planner: Planner) -> None:
    """As the message about it says."""
    plan = planner.plan(options={"mem-fraction-static": "0.83"}, pin={"mem_fraction_static": "auto"})
    assert plan.manifest.settings.engine.options == {"mem-fraction-static": "0.83"}


@pytest.mark.parametrize(
    ("engine", "key"),
    [("torch", "model"), ("torch", "environment"), ("torch", "base_cmd"), ("replay", "engine_python")],
)
def test_what_is_for_servers_is_refused_elsewhere(engine: str, key: str, tmp_path: Path) -> None:
    """It would be ignored without a word."""
    node = {"node": "pcie8-blackwell-cuda128"} if engine == "replay" else {}
    value: object = {"A": "1"} if key == "environment" else "x"
    with pytest.raises(UsageError, match="--engine sglang or vllm"):
        make_plan(load_spec(None, {"engine": engine, key: value, **node}), Home(tmp_path / "home"))


def test_an_engine_that_is_nowhere_is_named_with_how_to_install_it(
    planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every Python that was asked, and what to type."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"no sglang in .*bin/pip install sglang"):
        planner.plan(engine_python=None)


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("environment:\n  NCCL_ALGO: Ring\n", [":4: environment.NCCL_ALGO", "--pin nccl_algo=auto"]),
        ("environment:\n  A: true\n", [":4: environment.A", "in quotes"]),
        ("options:\n  port: 1\n", [":4: options.port", "chooses it"]),
        ("base_cmd: ls\n", [":3: base_cmd", "starts no engine"]),
        ("draft: /no/such\n", [":3: draft", "there is no /no/such"]),
        ("pin:\n  allreduce: pcie_ipc\n", [":4: pin.allreduce", "cannot be had"]),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(
    planner: Planner, tmp_path: Path, text: str, fragments: list[str]
) -> None:
    """The same checks, at the place where it was written."""
    file = tmp_path / "study.yaml"
    file.write_text(f"engine: sglang\nmodel: {planner.installed.model}\n{text}", encoding="utf-8")
    with pytest.raises(SpecificationError) as caught:
        make_plan(load_spec(file, {"engine_python": planner.installed.sglang}), Home(tmp_path / "home"))
    assert not [fragment for fragment in [str(file), *fragments] if fragment not in str(caught.value)], caught.value


def test_a_file_says_what_options_say(planner: Planner, tmp_path: Path) -> None:
    """Numbers of YAML become the text that the engine reads."""
    file = tmp_path / "study.yaml"
    text = f"engine: sglang\nmodel: {planner.installed.model}\nenvironment: {{SGLANG_DEBUG_SYMM_MEM: 1}}\ntp: 2\n"
    file.write_text(text + f"engine_python: {planner.installed.sglang}\ndevice: cpu\n", encoding="utf-8")
    settings = make_plan(load_spec(file, {}), Home(tmp_path / "home")).manifest.settings.engine
    assert (settings.variables, settings.num_ranks) == ({"SGLANG_DEBUG_SYMM_MEM": "1"}, 2)


@pytest.mark.parametrize("content", ["{", "[1]", '"text"', "\x00", "[" * 100_000])
def test_a_model_whose_configuration_cannot_be_read_is_refused(planner: Planner, tmp_path: Path, content: str) -> None:
    """Found now, not after minutes on the node."""
    draft = tmp_path / "draft"
    draft.mkdir()
    (draft / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"--draft: its configuration cannot be read: .*config\.json"):
        planner.plan(draft=str(draft))


def test_a_name_of_a_hub_is_taken_as_it_is(planner: Planner) -> None:
    """Nothing is fetched, so nothing is known of it."""
    plan = planner.plan(model="some-people/Model-7B.v2", draft="old-model")
    settings = plan.manifest.settings.engine
    assert (settings.model, settings.draft_model) == ("some-people/Model-7B.v2", "old-model")
