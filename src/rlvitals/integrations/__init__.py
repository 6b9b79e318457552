"""Other people's trainers record through these: one file a library, imported where it is used."""
