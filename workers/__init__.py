"""Code that runs on training machines. Of the other packages it imports only `palestra`."""
