"""The only place that imports sqlalchemy: engine, models, repositories, migrations' entry point."""
