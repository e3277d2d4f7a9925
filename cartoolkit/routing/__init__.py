"""Which model answers: what is known of each, what is asked for, scores, and a choice that explains itself.

Nothing here loads a model. Import from the modules: `schema` and `registry` hold the rows, `intent` what is
wanted, `scores` and `selection` the arithmetic, `decision` the answer.
"""

__all__: list[str] = []
