"""Reading records that lie in a store, one or many, written here or by anybody."""
