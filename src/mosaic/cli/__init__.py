"""The `mosaic` command, one module per group of verbs. It reaches the daemon only through `mosaic.client`."""
