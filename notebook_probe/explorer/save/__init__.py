"""What can be taken away from a panel: files, code, and the picture a notebook keeps."""
