"""What a policy is worth: thresholds from a labelled sample, and policies side by side on questions.

`calibrate` runs a model without look-ups and shows which threshold finds its wrong answers; `evaluate` runs
policies over questions and says, with intervals, which of them answers better and at what cost.
"""

from cartoolkit.evaluation.calibrating import calibrate, closed_book
from cartoolkit.evaluation.calibration import Calibration
from cartoolkit.evaluation.evaluate import evaluate
from cartoolkit.evaluation.evaluation import Evaluation
from cartoolkit.evaluation.matching import Grade, grade
from cartoolkit.evaluation.runs import Run
from cartoolkit.evaluation.sampling import sample_questions

__all__ = [
    "Calibration",
    "Evaluation",
    "Grade",
    "Run",
    "calibrate",
    "closed_book",
    "evaluate",
    "grade",
    "sample_questions",
]
