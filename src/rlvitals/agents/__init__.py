"""Answers for programs that act on their own: the Model Context Protocol over stdin and stdout."""
