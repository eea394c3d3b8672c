"""The `mosaic` command, one file per group of verbs. Reaches the daemon only through `client`."""
