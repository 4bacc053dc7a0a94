"""What is read of a tensor once and shared by the quantities that need it.

Entered by quantities and by the probes that read for them; it knows no quantity.
"""
