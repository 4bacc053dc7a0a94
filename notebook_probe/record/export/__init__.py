"""Out of a record: data frames, netCDF, .npy and zip archives."""
