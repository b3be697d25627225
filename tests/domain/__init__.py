"""Tests of the pure core: no files, no clock, no processes but those that are to die."""

import pytest

pytest.register_assert_rewrite("domain.contract", "domain.queue_life")
