"""Ways out of this package and into it: ONNX, modules rewritten for other runtimes, foreign weights."""
