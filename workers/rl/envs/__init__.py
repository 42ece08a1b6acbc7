"""Vector environments without autoreset, whose episodes can be saved and restored."""
