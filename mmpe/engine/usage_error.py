"""What ends a run that cannot do what it was asked for."""


class UsageError(Exception):
    """A run cannot start, or go on, as it was asked to; the message is one
    line that says what is wrong and what was expected."""

    def __init__(self, message: str) -> None:
        lines = message.split('\n')
        if lines[0].startswith('Caught UsageError in DataLoader worker'):
            # torch raises what it caught again, as a whole traceback.
            message = message.rpartition('UsageError: ')[2]
        super().__init__(' '.join(message.split()))
