"""Pictures as files. matplotlib is loaded here, and where a file is asked for alone."""
