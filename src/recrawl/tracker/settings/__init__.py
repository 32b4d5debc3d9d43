"""Settings: values and their readers, the table of their names, and how they are read from a file and flags."""
