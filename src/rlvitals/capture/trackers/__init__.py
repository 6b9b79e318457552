"""One module for each library: `follow(module)` records the library's calls."""
