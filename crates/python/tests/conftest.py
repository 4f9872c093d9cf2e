import gpu_run
import pytest

import programs


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory):
    """Programs of tests are not kept with the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPU_RUN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def echo(_cache):
    return gpu_run.Program(programs.ECHO, device="cpu")


@pytest.fixture(scope="session")
def functions(_cache):
    return gpu_run.Program(programs.FUNCTIONS, device="cpu")
