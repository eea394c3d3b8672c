"""The types that all parts share. Imports no third-party package and no other folder."""
