"""The table: records of pages and hosts, and the functions that read and write them."""
