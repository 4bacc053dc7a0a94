"""Trainings on an accelerator: on a CUDA device where there is one, else on the pretended one."""
