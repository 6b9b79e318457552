"""Rules that judge the optimiser: losses, gradients, learning rate, numbers at all."""
