"""Callbacks for the trainers of other libraries; a module is imported only by its users."""
