"""Commands that show what memories tell, beside recall."""
