"""What passes between the kernel and the views of a panel: read, checked and made here."""
