"""Workers: registration, heartbeats, pools."""
