"""Rules about the serving cluster that a scheduler policy routes for."""
