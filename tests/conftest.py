"""Fixtures and options of all tests. Groups: unit needs nothing, integration starts processes, `gpu` needs an NVIDIA GPU."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-gpu", action="store_true", help="run the tests that need an NVIDIA GPU")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--run-gpu"):
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU: make test-gpu"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
