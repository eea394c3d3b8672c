"""The results of a run that other programs show: TensorBoard, W&B, videos and reports."""
