import pytest

pytest.register_assert_rewrite("tests.containers.ldp_containers", "tests.containers.ldp_resources")
