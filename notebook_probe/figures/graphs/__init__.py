"""Pictures of graphs, of a network and of the data of a training: boxes in layers, and links."""
