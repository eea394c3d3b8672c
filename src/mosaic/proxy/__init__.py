"""The old name of hold and tail. Only the entry point that live runs of an older version restart is left."""
