"""What goes into a prompt: who the being is, what it keeps in mind, and what this message reminds it of (spec P5)."""
