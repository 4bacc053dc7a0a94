"""Export of a record: data frames, netCDF, .npy and zip archives.

Used through the methods of a run or an opened record; it writes no record.
"""
