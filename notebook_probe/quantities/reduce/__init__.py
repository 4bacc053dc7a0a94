"""What is read of a tensor once and shared by the quantities that need it; knows none of them."""
