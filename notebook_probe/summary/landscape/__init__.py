"""The loss round the way that parameters take: snapshots, planes, losses over them."""
