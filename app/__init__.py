"""The FastAPI server. Never imports workers, torch or gymnasium."""
