"""One line of a dialog from which a person chooses."""

from crew.domain.kernel.frozen import frozen


@frozen
class Choice:
    """The value that the line stands for, what it is called, a word about it, and its key."""

    value: str
    title: str
    about: str = ""
    key: str = ""
