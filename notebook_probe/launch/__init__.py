"""``nbp run``: a program that is not changed trains, and its first model is watched.

`command` gives the command and the environment of the program. Python then imports
``startup/sitecustomize.py`` before the program and before any process that it starts; that file
waits for the first optimizer, and hands it to `watching`.
"""
