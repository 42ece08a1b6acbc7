"""Presets: the submissions of `examples/`, from which a new one is begun."""

from palestra.contract.views import View


class PresetView(View):
    """A submission that comes with Palestra."""

    name: str
    """Path of its file below `examples`, without the ending, for example `learning/pendulum-sac`.
    """
    title: str
    """Display name of its definition."""
    description: str
    """One or a few sentences, from its notes or from the comment at the head of its file."""
    agent: str
    """Name of its agent, or of its model function."""
    env: str
    """Id of its environment, or name of its input function."""
    document: str
    """The file: YAML with comments."""
