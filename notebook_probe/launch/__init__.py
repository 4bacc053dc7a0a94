"""``nbp run``: an unchanged program trains, and its first model is watched.

`command` gives the command and the environment of the program. Python then imports
``startup/sitecustomize.py`` before the program and before any process that it starts; that file
waits for the first optimizer, and passes it to `watching`.
"""
