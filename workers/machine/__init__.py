"""What the torch-free processes of one machine share: registration, attempt directories, processes, HTTP to the server."""
