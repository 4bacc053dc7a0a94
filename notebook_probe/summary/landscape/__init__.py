"""Loss landscape around the path of the parameters: snapshots, planes, losses."""
