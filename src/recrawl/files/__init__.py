"""Pages in and out of CSV, JSONL and Parquet files, with errors that name the row."""
