"""The last lines that a program prints: heard at its streams, kept in memory, written as events."""
