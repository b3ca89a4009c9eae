"""Precedence, origins and refusals of settings."""

from pathlib import Path

import pytest

from weft.base.errors import InvalidOption, UnknownSetting, UnreadableFile
from weft.base.settings import RunSettings, ServeSettings, describe_settings, load_settings


def write(folder: Path, text: str) -> dict[str, str]:
    path = folder / "config.toml"
    path.write_text(text)
    return {"WEFT_CONFIG": str(path)}


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    environ = write(tmp_path, '[run]\nserver = ["file:1"]\ntimeout_s = 7\ntoken_file = "t"\n')
    environ |= {"WEFT_SERVER": "env:1, env:2", "WEFT_TIMEOUT_S": "6.5"}
    resolved = load_settings(RunSettings, {"timeout_s": "3", "path": None}, environ)
    assert resolved.values.timeout_s == 3.0
    assert resolved.values.server == ("env:1", "env:2")
    assert resolved.values.token_file == "t"
    assert resolved.origins["timeout_s"] == "flag"
    assert resolved.origins["server"] == "WEFT_SERVER"
    assert resolved.origins["token_file"] == str(tmp_path / "config.toml")
    assert resolved.origins["path"] == "default"


def test_each_program_reads_its_own_table(tmp_path: Path) -> None:
    environ = write(tmp_path, '[serve]\nlisten = "0.0.0.0:1"\n')
    assert load_settings(ServeSettings, {}, environ).values.listen == "0.0.0.0:1"
    assert load_settings(RunSettings, {}, environ).values == RunSettings()


@pytest.mark.parametrize("text", ["[run]\nsevrer = []\n", "[rnu]\n"])
def test_unknown_keys_are_errors(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnknownSetting):
        load_settings(RunSettings, {}, write(tmp_path, text))


@pytest.mark.parametrize("text", ["run = 3\n", "[run\n"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableFile, match=r"config\.toml"):
        load_settings(RunSettings, {}, write(tmp_path, text))


def test_a_bad_value_names_its_source() -> None:
    with pytest.raises(InvalidOption, match=r"timeout_s \(WEFT_TIMEOUT_S\) soon"):
        load_settings(RunSettings, {}, {"WEFT_TIMEOUT_S": "soon", "WEFT_CONFIG": "/nonexistent"})
    with pytest.raises(InvalidOption, match=r"path \(flag\) rdma"):
        load_settings(RunSettings, {"path": "rdma"}, {"WEFT_CONFIG": "/nonexistent"})


@pytest.mark.parametrize("kind", [RunSettings, ServeSettings])
def test_every_setting_is_described(kind: type[RunSettings] | type[ServeSettings]) -> None:
    for name, about, _ in describe_settings(kind):
        assert about.help, name
        assert about.variable.startswith("WEFT_"), name
