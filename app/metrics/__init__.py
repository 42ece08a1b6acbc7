"""The curve store: blocks, common-grid queries, statistics over runs, the fence chain.

Pure numpy; storage goes through `app.db`.
"""
