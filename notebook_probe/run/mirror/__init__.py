"""Mirroring of the record to another logger: W&B, TensorBoard, MLflow and similar ones.

It reads the record as any reader does, so that a slow logger costs no rows and no steps.
"""
