"""The programs that `benchmarks/engines.py` compares: each in a process of its own."""
