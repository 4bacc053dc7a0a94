"""Pictures of loss landscapes: contours, surfaces, and the path of the training on them."""
