<<<<<<< HEAD
"""Training stacks, built on the public API alone."""
=======
"""Training stacks of our own: each sees `import rlvitals` alone."""
>>>>>>> s5-cluster
