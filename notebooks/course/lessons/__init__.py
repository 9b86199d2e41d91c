"""A folder a lesson: all that only one notebook reads.

A lesson is reached through its notebook, and through `course.kit.learn.by_key`, which finds its questions and
exercises.
"""
