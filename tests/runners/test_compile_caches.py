"""Compiled kernels are shared by version and architecture, and a killed compiler does not stop the next one."""

from __future__ import annotations

from pathlib import Path

from runners.compile_caches import architecture, cache_root, cache_variables, remove_stale_batons


def test_each_version_and_architecture_has_a_folder_of_its_own(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    roots = {
        cache_root(environment, engine, version, arch)
        for engine in ("vllm", "sglang")
        for version in ("0.32.0+cpu", "0.33.0")
        for arch in ("sm90", "x86_64")
    }
    assert len(roots) == 8
    assert all(root.parent == tmp_path / "serving-search-agent" / "compiled" for root in roots)


def test_it_lies_in_the_user_s_home_by_default() -> None:
    root = cache_root({"HOME": "/home/u"}, "vllm", "../evil", "sm90")
    assert root == Path("/home/u/.cache/serving-search-agent/compiled/vllm-.._evil-sm90")


def test_what_the_user_has_set_is_left_alone(tmp_path: Path) -> None:
    variables = cache_variables({"TRITON_CACHE_DIR": "/mine"}, tmp_path)
    assert "TRITON_CACHE_DIR" not in variables
    assert variables["VLLM_CACHE_ROOT"] == str(tmp_path / "vllm")


def test_a_baton_that_nobody_holds_is_removed(tmp_path: Path) -> None:
    """torch waits for the file to go away, without an end."""
    folder = tmp_path / "torch_extensions" / "py311_cu130" / "fused"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    held = folder.parent / "held"
    held.mkdir()
    with (held / "lock").open("w"):
        assert remove_stale_batons(tmp_path) == (folder / "lock",)
        assert (held / "lock").exists()
    assert not (folder / "lock").exists()
    assert remove_stale_batons(tmp_path / "not there") == ()


def test_the_architecture_of_a_node_without_gpus_is_its_processor_s() -> None:
    assert architecture("cpu") in ("x86_64", "aarch64")
