"""What happened: steps."""
from cartoolkit.trace.step import STAGES, Candidate, Candidates, Step
