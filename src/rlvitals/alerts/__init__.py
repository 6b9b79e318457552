"""Send alerts about runs to a desktop, a chat, a mailbox, a webhook or a command."""
