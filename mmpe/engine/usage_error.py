"""What ends a run that cannot do what it was asked for."""


class UsageError(Exception):
    """A run cannot start, or go on, as it was asked to; the message is one
    line that says what is wrong and what was expected."""

    def __init__(self, message: str) -> None:
        super().__init__(' '.join(message.split()))
