"""MOSAIC's own algorithms. Each is a script like CleanRL's and is run as `__main__`."""
