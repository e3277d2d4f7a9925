"""From a request to a choice: what is wanted, who may answer, what each is worth, and why."""

__all__: list[str] = []
