"""Pages from files of other programs: one pure parser for each format, none of which can be made to fail."""
