"""How good the diagnosis is: mistakes made on purpose, and what is said of them."""
