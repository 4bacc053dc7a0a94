"""The record: one run as an open, chunked zarr store. numpy, xarray and zarr only."""
