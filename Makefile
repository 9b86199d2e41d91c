# A thin face of tasks.py, which does the same without make: python tasks.py lab
#   make lab ARGS=--no-browser    arguments for the command
#   make fresh ARGS="01 03"       new copies of these notebooks; yours are kept beside them
#   make lab TORCH=cpu            PyTorch's CPU wheels (1 GB) instead of the CUDA build (5.8 GB)
#   make oracle PYTORCH=DIR       also the test files of a checkout of PyTorch; so does make long
#   make links REPO=owner/name    links in README to Colab and others, and the address; without REPO they go
#   make site REPO=owner/name     pages that link to the project's address at GitHub
#   make third-party SUITES=DIR   the tests of other projects' checkouts, on virtual GPUs; so does make long

PYTHON ?= python3
COMMANDS = lab fresh test long oldest notebooks bench oracle third-party site links lint clean

.PHONY: help $(COMMANDS)

help:
	@$(PYTHON) tasks.py --help

$(COMMANDS):
	@$(PYTHON) tasks.py $@ $(if $(TORCH),--torch $(TORCH)) $(if $(PYTORCH),--pytorch $(abspath $(PYTORCH))) $(if $(REPO),--repo $(REPO)) $(if $(SUITES),--suites $(abspath $(SUITES))) $(ARGS)
