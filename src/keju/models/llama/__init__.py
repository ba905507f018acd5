"""GGUF files run by llama.cpp inside this process: ``--model embedded`` and ``gguf:PATH``."""
