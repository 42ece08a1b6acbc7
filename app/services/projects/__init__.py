"""Projects: their settings and their members."""
