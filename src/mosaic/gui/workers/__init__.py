"""The workers page: what is installed, what can be, and what is broken."""
