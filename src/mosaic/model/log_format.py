"""The format of log files: one line per message, whatever a name or an error in it contains."""

import logging

from mosaic.model.visible import visible, visible_line


class LogFormat(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))  # with the lines of a traceback
