"""The parts of a supervisor: starting a trainer, watching it, shipping what it wrote, telling how it ended."""
