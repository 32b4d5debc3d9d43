"""A living web, the tracker on it, its dashboard, and what others would have made of the same budget."""
