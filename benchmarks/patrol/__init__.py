"""The time that a patrol takes, and its effect on recalls."""
