"""What users ask of a tracker: commands and how they reach it, reports, the look at a set-up."""
