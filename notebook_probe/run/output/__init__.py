"""The last lines that a program prints: copied from its streams, bounded, written as events."""
