"""Fixtures of what is drawn."""

from __future__ import annotations

import pytest

from tests.explorer.draw.panel_side import PanelSide


@pytest.fixture
def side() -> PanelSide:
    return PanelSide()
