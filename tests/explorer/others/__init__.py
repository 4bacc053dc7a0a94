"""Other runs beside one: records that are small and real."""
