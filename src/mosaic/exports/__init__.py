"""Runs for other programs: Parquet, TensorBoard, Weights & Biases, and models for the Hugging Face Hub.

Everything is written beside its target and renamed when it is complete; nothing here needs the program that reads it.
"""
