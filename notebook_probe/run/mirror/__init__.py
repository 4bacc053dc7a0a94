"""Handing on what is recorded to another logger: W&B, TensorBoard, MLflow and their like.

It reads the record as any reader does, so that a slow logger costs neither rows nor steps.
"""
