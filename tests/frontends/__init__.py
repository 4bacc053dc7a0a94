"""The panel in notebooks other than JupyterLab, as people use them: real servers, a real browser.

They live in an environment of their own: ``make test-frontends``. Elsewhere nothing here is
collected.
"""
