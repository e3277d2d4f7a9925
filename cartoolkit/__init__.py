"""cartoolkit: watch a language model decide."""
