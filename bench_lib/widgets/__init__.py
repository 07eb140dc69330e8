"""Widgets for JupyterLab; each is a plain function of what the reports are made from."""
