"""What a policy is worth: thresholds from a labelled sample, and policies side by side on questions.

`calibrate` runs a model without look-ups and shows which threshold finds its wrong answers; `evaluate` runs
policies over questions and says, with intervals, which of them answers better and at what cost.
"""

__all__: list[str] = []
