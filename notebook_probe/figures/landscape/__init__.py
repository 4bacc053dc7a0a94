"""Pictures of loss landscapes: contours, surfaces, and the way of the training upon them."""
