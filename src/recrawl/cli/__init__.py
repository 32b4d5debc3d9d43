"""The commands: what a person types and sees."""
