"""The chart: curves over steps, drawn by pyqtgraph."""
