"""Our own algorithms, each a script as CleanRL's are: run it as `__main__`."""
