"""Named views of a panel, kept in a JSON file in the folder of the records."""

from notebook_probe.explorer.saved_views.view_file import ViewFile
from notebook_probe.explorer.saved_views.view_settings import ViewSettings

__all__ = ["ViewFile", "ViewSettings"]
