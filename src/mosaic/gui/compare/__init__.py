"""The compare page: curves of several runs in one chart, and the settings that differ."""
