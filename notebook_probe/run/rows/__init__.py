"""From a closed step to rows of the record, on the host."""
