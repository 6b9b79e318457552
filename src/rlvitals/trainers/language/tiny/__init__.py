"""Two models small enough to train on a CPU: a language model and a vision-language model."""
