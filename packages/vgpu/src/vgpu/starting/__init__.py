"""How a process gets its virtual GPUs, from its parent or its environment, and says so."""
